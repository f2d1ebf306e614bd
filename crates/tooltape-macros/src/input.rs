//! `#[input]`: what a model may send.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Meta, Path, Token, Type};

/// Serde's and schemars' words for fields that are not read by their own type.
const NOT_BY_TYPE: [&str; 4] = ["skip", "skip_deserializing", "with", "deserialize_with"];

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(item) = syn::parse2::<DeriveInput>(item.clone()) else {
        let err = Error::new(Span::call_site(), "an input is a struct or an enum");
        let err = err.to_compile_error();
        return quote! { #err #item };
    };
    let checks = syn::parse2::<Ident>(args.clone()).is_ok_and(|word| word == "check");
    let mistake = match args.is_empty() || checks {
        true => shape_mistake(&item),
        false => Some(Error::new_spanned(args, "expected `#[input]` or `#[input(check)]`")),
    };
    // Where something is wrong, the input stays one, so that one mistake is one message.
    let mistake = mistake.map(Error::into_compile_error);
    let (parts, derived, input) = (parts(&item), derived(&item), input(&item, checks));
    quote! { #mistake #parts #derived #input }
}

/// Every provider sends an object, so an input must be one.
fn shape_mistake(item: &DeriveInput) -> Option<Error> {
    let message = match &item.data {
        Data::Struct(of) => match of.fields {
            Fields::Named(_) => return None,
            Fields::Unit => "an input is an object: write `{}` instead of `;`",
            Fields::Unnamed(_) => "an input is an object: give its fields names",
        },
        Data::Enum(_) if has_word(&item.attrs, &["tag"]) || is_choice(item) => return None,
        Data::Enum(_) => {
            "an input enum needs a tag, because every provider sends an object: \
             add `#[serde(tag = \"action\")]`"
        }
        Data::Union(_) => "an input is a struct or an enum",
    };
    Some(Error::new_spanned(&item.ident, message))
}

/// A choice of words. It may be a field of an input, but is none.
fn is_choice(item: &DeriveInput) -> bool {
    match &item.data {
        Data::Enum(of) => {
            let plain = |fields: &Fields| matches!(fields, Fields::Unit);
            !has_word(&item.attrs, &["tag"]) && of.variants.iter().all(|it| plain(&it.fields))
        }
        Data::Struct(_) | Data::Union(_) => false,
    }
}

/// One assertion for each field, at its own span and in our words, before serde's and schemars'.
fn parts(item: &DeriveInput) -> TokenStream {
    let fields: Vec<&Field> = match &item.data {
        // What a generic field can be is known only where the input is used.
        _ if !item.generics.params.is_empty() => Vec::new(),
        Data::Struct(of) => of.fields.iter().collect(),
        Data::Enum(of) => of.variants.iter().flat_map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let by_type =
        |field: &&Field| !has_word(&field.attrs, &NOT_BY_TYPE) && !mentions_self(&field.ty);
    let parts = fields.into_iter().filter(by_type).map(|Field { ty, .. }| {
        let at = Span::mixed_site().located_at(ty.span());
        quote_spanned! { at => ::tooltape::__private::part::<#ty>(); }
    });
    quote! { const _: fn() = || { #(#parts)* }; }
}

/// The item, readable and described by a schema, both without any crate but ours in scope.
fn derived(item: &DeriveInput) -> TokenStream {
    let theirs = derives(&item.attrs);
    let is_theirs = |name: &str| {
        theirs.iter().any(|path| path.segments.last().is_some_and(|last| last.ident == name))
    };
    let read = (!is_theirs("Deserialize"))
        .then(|| quote! { #[derive(::tooltape::__private::serde::Deserialize)] });
    let described = (!is_theirs("JsonSchema"))
        .then(|| quote! { #[derive(::tooltape::__private::schemars::JsonSchema)] });
    let closed = (!has_word(&item.attrs, &["deny_unknown_fields"]))
        .then(|| quote! { #[serde(deny_unknown_fields)] });
    quote! {
        #read
        #described
        #closed
        #[serde(crate = "::tooltape::__private::serde")]
        #[schemars(crate = "::tooltape::__private::schemars")]
        #item
    }
}

fn input(item: &DeriveInput, checks: bool) -> Option<TokenStream> {
    let ident = &item.ident;
    let (of, with, bounds) = item.generics.split_for_impl();
    let check = checks.then(|| {
        quote! {
            fn check(&self) -> ::std::result::Result<(), ::std::string::String> {
                #ident::check(self)
            }
        }
    });
    (!is_choice(item)).then(|| {
        quote! {
            impl #of ::tooltape::Input for #ident #with #bounds { #check }
        }
    })
}

/// Whether one of these words stands in some `#[serde(…)]` or `#[schemars(…)]`.
fn has_word(attrs: &[Attribute], words: &[&str]) -> bool {
    let helps =
        |attr: &&Attribute| attr.path().is_ident("serde") || attr.path().is_ident("schemars");
    // What is not understood here is serde's or schemars' to report.
    let listed = attrs.iter().filter(helps).filter_map(|attr| {
        attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()
    });
    listed.flatten().any(|meta| words.iter().any(|word| meta.path().is_ident(word)))
}

fn derives(attrs: &[Attribute]) -> Vec<Path> {
    let derives = attrs.iter().filter(|attr| attr.path().is_ident("derive"));
    let listed = derives.filter_map(|attr| {
        attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).ok()
    });
    listed.flatten().collect()
}

fn mentions_self(ty: &Type) -> bool {
    quote!(#ty).to_string().split_whitespace().any(|word| word == "Self")
}
