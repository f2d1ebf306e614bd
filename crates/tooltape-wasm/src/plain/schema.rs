//! Types of functions as schemas of JSON.

use serde_json::{Map, Value, json};
use wasmtime::component::Type;

use crate::limit::{TYPE_DEPTH_MAX, TYPES_MAX};

/// Writes schemas, of which there may be only so much.
#[derive(Default)]
pub(super) struct Schemas {
    depth: usize,
    types: usize,
}

/// What a function answers with where it succeeds: of a result, the better half.
pub(super) fn answer(result: Option<&Type>) -> Option<Type> {
    match result? {
        Type::Result(result) => result.ok(),
        ty => Some(ty.clone()),
    }
}

/// Whether there are flags in a type. In one that is too large to be looked through there may be.
pub(super) fn has_flags(ty: &Type) -> bool {
    fn look(ty: &Type, types: &mut usize) -> bool {
        *types += 1;
        if *types > TYPES_MAX {
            return true;
        }
        let mut any = |ty: Option<Type>| ty.is_some_and(|ty| look(&ty, types));
        match ty {
            Type::Flags(_) => true,
            Type::List(list) => any(Some(list.ty())),
            Type::Option(option) => any(Some(option.ty())),
            Type::Result(result) => any(result.ok()) || any(result.err()),
            Type::Record(record) => record.fields().any(|field| any(Some(field.ty))),
            Type::Tuple(tuple) => tuple.types().any(|ty| any(Some(ty))),
            Type::Variant(variant) => variant.cases().any(|case| any(case.ty)),
            Type::Map(map) => any(Some(map.key())) || any(Some(map.value())),
            Type::FixedLengthList(list) => any(Some(list.ty())),
            _ => false,
        }
    }
    look(ty, &mut 0)
}

impl Schemas {
    /// The schema of a type, or why it has none.
    pub(super) fn of(&mut self, ty: &Type) -> Result<Value, String> {
        self.types += 1;
        if self.types > TYPES_MAX || self.depth == TYPE_DEPTH_MAX {
            return Err(format!(
                "its types are too large, expected at most {TYPES_MAX} of them, {TYPE_DEPTH_MAX} \
                 deep"
            ));
        }
        self.depth += 1;
        let schema = self.inner(ty);
        self.depth -= 1;
        schema
    }

    fn inner(&mut self, ty: &Type) -> Result<Value, String> {
        Ok(match ty {
            Type::Bool => json!({ "type": "boolean" }),
            Type::S8 => integer(i8::MIN, i8::MAX),
            Type::U8 => integer(u8::MIN, u8::MAX),
            Type::S16 => integer(i16::MIN, i16::MAX),
            Type::U16 => integer(u16::MIN, u16::MAX),
            Type::S32 => integer(i32::MIN, i32::MAX),
            Type::U32 => integer(u32::MIN, u32::MAX),
            Type::S64 => integer(i64::MIN, i64::MAX),
            Type::U64 => integer(u64::MIN, u64::MAX),
            Type::Float32 | Type::Float64 => json!({ "type": "number" }),
            Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Type::String => json!({ "type": "string" }),
            Type::List(list) => json!({ "type": "array", "items": self.of(&list.ty())? }),
            Type::Record(record) => self.object(record.fields().map(|it| (it.name, it.ty)))?,
            Type::Tuple(tuple) => {
                let items = tuple.types().map(|ty| self.of(&ty));
                let items = items.collect::<Result<Vec<Value>, String>>()?;
                let count = items.len();
                json!({ "type": "array", "prefixItems": items, "minItems": count,
                        "maxItems": count })
            }
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| match case.ty {
                    None => Ok(json!({ "const": case.name })),
                    Some(ty) => self.tagged(case.name, Some(&ty)),
                });
                json!({ "oneOf": cases.collect::<Result<Vec<Value>, String>>()? })
            }
            Type::Enum(cases) => {
                json!({ "type": "string", "enum": cases.names().collect::<Vec<_>>() })
            }
            Type::Option(option) => match option.ty() {
                Type::Option(_) => {
                    return Err("`option<option<_>>` has one `null` for two values".to_owned());
                }
                ty => json!({ "anyOf": [self.of(&ty)?, { "type": "null" }] }),
            },
            Type::Result(result) => {
                let ok = self.tagged("ok", result.ok().as_ref())?;
                json!({ "oneOf": [ok, self.tagged("err", result.err().as_ref())?] })
            }
            Type::Flags(flags) => {
                let names: Vec<&str> = flags.names().collect();
                let item = json!({ "type": "string", "enum": names });
                json!({ "type": "array", "items": item, "uniqueItems": true })
            }
            Type::Own(_) | Type::Borrow(_) => return Err(unknown("a resource")),
            Type::Future(_) => return Err(unknown("a `future`")),
            Type::Stream(_) => return Err(unknown("a `stream`")),
            Type::ErrorContext => return Err(unknown("an `error-context`")),
            Type::Map(_) => return Err(unknown("a `map`")),
            Type::FixedLengthList(_) => return Err(unknown("a list of fixed length")),
        })
    }

    /// The schema of an object with these fields. Those that may be missing may be left out.
    pub(super) fn object<'n>(
        &mut self,
        fields: impl Iterator<Item = (&'n str, Type)>,
    ) -> Result<Value, String> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (name, ty) in fields {
            properties.insert(name.to_owned(), self.of(&ty)?);
            if !matches!(ty, Type::Option(_)) {
                required.push(name);
            }
        }
        Ok(json!({ "type": "object", "properties": properties, "required": required,
                   "additionalProperties": false }))
    }

    /// The schema of an object with one field, which says which case it is.
    fn tagged(&mut self, name: &str, ty: Option<&Type>) -> Result<Value, String> {
        let value = ty.map_or_else(|| Ok(json!({ "type": "null" })), |ty| self.of(ty))?;
        Ok(json!({ "type": "object", "properties": { name: value }, "required": [name],
                   "additionalProperties": false }))
    }
}

fn integer(least: impl Into<Value>, most: impl Into<Value>) -> Value {
    json!({ "type": "integer", "minimum": least.into(), "maximum": most.into() })
}

fn unknown(what: &str) -> String {
    format!("it has {what} in its types, which has no JSON")
}
