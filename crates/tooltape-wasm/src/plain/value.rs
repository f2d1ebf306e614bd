//! Values of functions from JSON.

use serde_json::Value;
use wasmtime::component::{Type, Val};

/// The value of a type that a JSON value stands for.
pub(super) fn read(value: &Value, ty: &Type) -> Result<Val, String> {
    let misfit = || format!("expected {}", expected(ty));
    let signed = || value.as_i64().ok_or_else(misfit);
    let unsigned = || value.as_u64().ok_or_else(misfit);
    let text = || value.as_str().ok_or_else(misfit);
    Ok(match ty {
        Type::Bool => Val::Bool(value.as_bool().ok_or_else(misfit)?),
        Type::S8 => Val::S8(signed()?.try_into().map_err(|_| misfit())?),
        Type::S16 => Val::S16(signed()?.try_into().map_err(|_| misfit())?),
        Type::S32 => Val::S32(signed()?.try_into().map_err(|_| misfit())?),
        Type::S64 => Val::S64(signed()?),
        Type::U8 => Val::U8(unsigned()?.try_into().map_err(|_| misfit())?),
        Type::U16 => Val::U16(unsigned()?.try_into().map_err(|_| misfit())?),
        Type::U32 => Val::U32(unsigned()?.try_into().map_err(|_| misfit())?),
        Type::U64 => Val::U64(unsigned()?),
        // What is no number of the smaller kind is the nearest that is one.
        Type::Float32 => Val::Float32(value.as_f64().ok_or_else(misfit)? as f32),
        Type::Float64 => Val::Float64(value.as_f64().ok_or_else(misfit)?),
        Type::Char => {
            let mut chars = text()?.chars();
            match (chars.next(), chars.next()) {
                (Some(only), None) => Val::Char(only),
                (_, _) => return Err(misfit()),
            }
        }
        Type::String => Val::String(text()?.to_owned()),
        Type::List(_)
        | Type::Tuple(_)
        | Type::Record(_)
        | Type::Variant(_)
        | Type::Enum(_)
        | Type::Option(_)
        | Type::Result(_)
        | Type::Flags(_)
        | Type::Own(_)
        | Type::Borrow(_)
        | Type::Future(_)
        | Type::Stream(_)
        | Type::ErrorContext
        | Type::Map(_)
        | Type::FixedLengthList(_) => compound(value, ty).ok_or_else(misfit)??,
    })
}

/// The same of a type that is made of others; nothing where the value does not look like it.
fn compound(value: &Value, ty: &Type) -> Option<Result<Val, String>> {
    Some(match ty {
        Type::List(list) => {
            let ty = list.ty();
            let items = value.as_array()?.iter().map(|item| read(item, &ty));
            items.collect::<Result<_, _>>().map(Val::List)
        }
        Type::Tuple(tuple) => {
            let items = value.as_array().filter(|items| items.len() == tuple.types().len())?;
            let items = items.iter().zip(tuple.types()).map(|(item, ty)| read(item, &ty));
            items.collect::<Result<_, _>>().map(Val::Tuple)
        }
        Type::Record(record) => {
            let object = value.as_object()?;
            let fields = record.fields().map(|field| {
                let value = object.get(field.name).unwrap_or(&Value::Null);
                Ok((field.name.to_owned(), read(value, &field.ty)?))
            });
            fields.collect::<Result<_, String>>().map(Val::Record)
        }
        Type::Variant(variant) => {
            let (name, inner) = tag(value)?;
            let case = variant.cases().find(|case| case.name == name)?;
            payload(inner, case.ty.as_ref())?.map(|inner| Val::Variant(name.to_owned(), inner))
        }
        Type::Enum(cases) => {
            let name = value.as_str().filter(|name| cases.names().any(|it| it == *name))?;
            Ok(Val::Enum(name.to_owned()))
        }
        Type::Option(option) => match value {
            Value::Null => Ok(Val::Option(None)),
            value => read(value, &option.ty()).map(|value| Val::Option(Some(Box::new(value)))),
        },
        Type::Result(result) => {
            let (name, inner) = tag(value)?;
            let inner = inner.filter(|inner| !inner.is_null());
            match name {
                "ok" => payload(inner, result.ok().as_ref())?.map(|it| Val::Result(Ok(it))),
                "err" => payload(inner, result.err().as_ref())?.map(|it| Val::Result(Err(it))),
                _ => return None,
            }
        }
        Type::Flags(flags) => {
            let known = |item: &Value| {
                let name = item.as_str().filter(|name| flags.names().any(|it| it == *name));
                name.map(str::to_owned)
            };
            let names = value.as_array()?.iter().map(known).collect::<Option<_>>()?;
            Ok(Val::Flags(names))
        }
        _ => return None,
    })
}

/// Which case a value is, and what it holds.
fn tag(value: &Value) -> Option<(&str, Option<&Value>)> {
    match value {
        Value::String(name) => Some((name, None)),
        Value::Object(object) if object.len() == 1 => {
            object.iter().next().map(|(name, value)| (name.as_str(), Some(value)))
        }
        _ => None,
    }
}

/// What a case holds, where it holds something and is given it.
fn payload(value: Option<&Value>, ty: Option<&Type>) -> Option<Result<Option<Box<Val>>, String>> {
    match (value, ty) {
        (None, None) => Some(Ok(None)),
        (Some(value), Some(ty)) => Some(read(value, ty).map(|value| Some(Box::new(value)))),
        // A case whose value may be missing, and is.
        (None, Some(ty @ Type::Option(_))) => {
            Some(read(&Value::Null, ty).map(|value| Some(Box::new(value))))
        }
        (Some(_), None) | (None, Some(_)) => None,
    }
}

/// What a value of a type looks like, in words.
fn expected(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "`true` or `false`",
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => "an integer that fits",
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => "an integer that fits and is not negative",
        Type::Float32 | Type::Float64 => "a number",
        Type::Char => "one character",
        Type::String => "a string",
        Type::List(_) | Type::Tuple(_) | Type::FixedLengthList(_) => "a list of as many values",
        Type::Record(_) | Type::Map(_) => "an object",
        Type::Variant(_) | Type::Result(_) => "one of the cases",
        Type::Enum(_) | Type::Flags(_) => "one of the names",
        Type::Option(_) => "a value or `null`",
        Type::Own(_) | Type::Borrow(_) | Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
            "what has no JSON"
        }
    }
}
