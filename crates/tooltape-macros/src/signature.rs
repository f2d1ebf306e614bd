//! What a function must be to be a tool, as far as that can be seen without its types.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, GenericParam, ItemFn, Lit, Meta, Result, Type};

use crate::declare::Declared;

/// The most grants that a tool may take.
const GRANTS_MAX: usize = 8;

/// The parts of a function that passed every check.
pub(crate) struct Signature<'f> {
    /// What the model sends.
    pub(crate) input: &'f Type,
    /// What the host grants.
    pub(crate) grants: Vec<&'f Type>,
    /// What the model reads about the tool.
    pub(crate) doc: TokenStream,
}

/// Checks everything, and reports all that is wrong at once.
pub(crate) fn checked<'f>(function: &'f ItemFn, declared: &Declared) -> Result<Signature<'f>> {
    let mut mistakes = Vec::new();
    mistakes.extend(asyncness(function, declared));
    mistakes.extend(function.sig.generics.params.iter().filter_map(lifetime));
    let (mut types, ident) = (Vec::new(), &function.sig.ident);
    for param in &function.sig.inputs {
        match param {
            FnArg::Typed(param) => types.push(&*param.ty),
            FnArg::Receiver(receiver) => mistakes.push(Error::new_spanned(
                receiver,
                "a tool is a function, not a method: take what `self` holds as a grant",
            )),
        }
    }
    let mut types = types.into_iter();
    let (input, grants) = (types.next(), types.collect::<Vec<_>>());
    if function.sig.inputs.is_empty() {
        let message = "a tool's first parameter is what the model sends; where that is nothing, \
                       write `_: tooltape::Empty`";
        mistakes.push(Error::new_spanned(ident, message));
    }
    mistakes.extend(duplicates(&grants));
    if let Some(ty) = grants.get(GRANTS_MAX) {
        let message = format!(
            "a tool takes at most {GRANTS_MAX} grants: gather some of them in a struct of your \
             own with `impl tooltape::Grant`"
        );
        mistakes.push(Error::new_spanned(ty, message));
    }
    let doc = doc_comment(&function.attrs);
    if doc.is_none() {
        let message = "a tool needs a doc comment: it is what the model reads about the tool";
        mistakes.push(Error::new_spanned(ident, message));
    }
    let all = mistakes.into_iter().reduce(|mut all, mistake| {
        all.combine(mistake);
        all
    });
    match (all, input, doc) {
        (None, Some(input), Some(doc)) => Ok(Signature { input, grants, doc }),
        (Some(all), _, _) => Err(all),
        (None, _, _) => unreachable!("what is missing was reported"),
    }
}

fn asyncness(function: &ItemFn, declared: &Declared) -> Option<Error> {
    match (function.sig.asyncness, declared.blocking) {
        (Some(_), false) | (None, true) => None,
        (None, false) => Some(Error::new_spanned(
            function.sig.fn_token,
            "a tool is an `async fn`; for a synchronous function write `#[tool(.., blocking)]`, \
             and it runs on a thread of its own",
        )),
        (Some(token), true) => Some(Error::new_spanned(
            token,
            "a `blocking` tool is a synchronous `fn`: leave out `async` or `blocking`",
        )),
    }
}

fn lifetime(param: &GenericParam) -> Option<Error> {
    match param {
        GenericParam::Lifetime(param) => Some(Error::new_spanned(
            param,
            "a tool outlives whoever registers it, so it borrows nothing: take owned types",
        )),
        GenericParam::Type(_) | GenericParam::Const(_) => None,
    }
}

/// Two grants of one type would be the same value twice, which is never what was meant.
fn duplicates(grants: &[&Type]) -> Vec<Error> {
    let text = |ty: &Type| quote!(#ty).to_string();
    let twice = grants
        .iter()
        .enumerate()
        .filter(|(at, ty)| grants[..*at].iter().any(|earlier| text(earlier) == text(ty)));
    let message = "this grant is taken twice: a run holds one value of each type, so wrap the \
                   second in a type of its own";
    twice.map(|(_, ty)| Error::new_spanned(ty, message)).collect()
}

/// The doc comment as one text. `#[doc = include_str!("…")]` is a doc comment too.
fn doc_comment(attrs: &[Attribute]) -> Option<TokenStream> {
    let docs = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
        _ => None,
    });
    let mut says_something = false;
    let lines = docs.map(|doc| match doc {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            let text = text.value();
            let line = text.strip_prefix(' ').unwrap_or(&text).trim_end();
            says_something |= !line.is_empty();
            quote!(#line)
        }
        other => {
            says_something = true;
            quote!(#other)
        }
    });
    let lines: Vec<_> = lines.collect();
    says_something.then(|| quote!(::std::concat!(#(#lines, "\n"),*).trim()))
}
