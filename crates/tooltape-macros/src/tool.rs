//! `#[tool]`: what a function and its attribute expand to.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Ident, ItemFn, Path, ReturnType, Type};

use crate::declare::Declared;
use crate::signature::{self, Signature};

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let err = Error::new(Span::call_site(), "a tool is a function: `#[tool]` stands on one");
        let err = err.to_compile_error();
        return quote! { #err #item };
    };
    let declared = syn::parse2::<Declared>(args);
    let body = declared.and_then(|declared| {
        let signature = signature::checked(&function, &declared)?;
        Ok(body(&function, &declared, &signature))
    });
    // Where something is wrong, function and tool stay what they are, so that one mistake is one
    // message. Only a method has no room for the tool beside it.
    let tool = match body {
        Ok(body) => tool(&function, &body),
        Err(err) if function.sig.receiver().is_some() => err.to_compile_error(),
        Err(err) => tool(&function, &err.to_compile_error()),
    };
    quote! {
        #[allow(clippy::too_many_arguments, reason = "all but the first are grants")]
        #function
        #tool
    }
}

/// What `tools![…]` finds under the function's name.
///
/// A braced struct lives in the type namespace only, so the function of the same name stays
/// callable: `read_file(..)` calls, `tools![read_file]` registers.
fn tool(function: &ItemFn, body: &TokenStream) -> TokenStream {
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let carried = |name: &'static str| {
        let attrs = function.attrs.iter();
        attrs.filter(move |attr| attr.path().is_ident(name)).map(Attribute::to_token_stream)
    };
    let (cfg, deprecated): (Vec<_>, _) = (carried("cfg").collect(), carried("deprecated"));
    let generics = &function.sig.generics;
    let (of, with, bounds) = generics.split_for_impl();
    let types: Vec<_> = generics.type_params().map(|param| &param.ident).collect();
    let lifetimes: Vec<_> = generics.lifetimes().map(|param| &param.lifetime).collect();
    let marker = (!generics.params.is_empty()).then(|| {
        quote! { of: ::std::marker::PhantomData<fn() -> (#(&#lifetimes (),)* #(#types,)*)> }
    });
    quote! {
        #(#cfg)*
        #(#deprecated)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it shares its name with the function")]
        #visibility struct #ident #of #bounds { #marker }

        #(#cfg)*
        #[allow(deprecated, reason = "a deprecated tool warns where it is registered")]
        impl #of #ident #with #bounds {
            #[doc(hidden)]
            #visibility fn tool() -> ::std::sync::Arc<dyn ::tooltape::Tool> {
                #body
            }
        }
    }
}

/// The proof of each part of the signature, at that part's span, and then the call.
///
/// Its locals are hygienic, so that a tool may have any name.
fn body(function: &ItemFn, declared: &Declared, signature: &Signature<'_>) -> TokenStream {
    let Signature { input, grants, doc } = signature;
    let name = declared.name.clone().unwrap_or_else(|| function.sig.ident.unraw().to_string());
    let steps = &declared.steps;
    let held: Vec<_> = (0..grants.len()).map(|at| local(&format!("grant_{at}"))).collect();
    let granted = grants.iter().map(|ty| proof("granted", ty));
    // Which grants a generic function takes is known, and checked, only at registration.
    let known = declared.pure && function.sig.generics.params.is_empty();
    let harmless = grants.iter().filter(|_| known).map(|ty| harmless(ty));
    let sent = proof("sent", input);
    let returned = returned(function);
    let touches = declared.touches.as_ref().map(|path| touches(path, input));
    let call = call(function, declared, &held);
    quote_spanned! { Span::mixed_site() =>
        #(#harmless)*
        #[allow(unused_mut, reason = "a tool may declare nothing")]
        let mut spec = ::tooltape::Spec::new(#name, #doc);
        #(#steps)*
        let sent = #sent;
        #touches
        #(let #held = #granted;)*
        let returned = #returned;
        let (needs, errors) = (::std::vec![#(#held.need),*], returned.errors());
        ::tooltape::__private::declared(spec, sent, needs, errors, move |input, grants| #call)
    }
}

/// Hands over the function that says what a call touches; a wrong type is reported at its name.
fn touches(path: &Path, input: &Type) -> TokenStream {
    let name = quote!(#path).to_string().replace(' ', "");
    let at = Span::mixed_site().located_at(path.span());
    quote_spanned! { at =>
        let touches: fn(&#input) -> ::tooltape::Footprint = #path;
        let spec = sent.touching(spec, #name, touches);
    }
}

/// Calls the function with what was sent and granted.
fn call(function: &ItemFn, declared: &Declared, held: &[Ident]) -> TokenStream {
    let ident = &function.sig.ident;
    let turbofish = function.sig.generics.split_for_impl().1;
    let turbofish = turbofish.as_turbofish();
    // What is wrong with the function as a whole is reported at its name.
    let at = Span::mixed_site().located_at(ident.span());
    match declared.blocking {
        false => quote_spanned! { at =>
            returned.of(#ident #turbofish (input, #((#held.take)(grants)),*))
        },
        true => quote_spanned! { at => {
            #(let #held = (#held.take)(grants);)*
            returned.of_blocking(grants, move || #ident #turbofish (input, #(#held),*))
        }},
    }
}

fn returned(function: &ItemFn) -> TokenStream {
    match &function.sig.output {
        // `impl Trait` has no name to prove something about: it is inferred from the call.
        ReturnType::Type(_, ty) if mentions_impl(ty) => {
            quote_spanned! { Span::mixed_site().located_at(ty.span()) =>
                ::tooltape::__private::returned()
            }
        }
        ReturnType::Type(_, ty) => proof("returned", ty),
        ReturnType::Default => {
            quote_spanned! { Span::mixed_site().located_at(function.sig.ident.span()) =>
                ::tooltape::__private::returned::<()>()
            }
        }
    }
}

/// Proves something about a type, at the type's span.
fn proof(of: &str, ty: &Type) -> TokenStream {
    let at = Span::mixed_site().located_at(ty.span());
    let of = Ident::new(of, at);
    quote_spanned! { at => ::tooltape::__private::#of::<#ty>() }
}

fn harmless(ty: &Type) -> TokenStream {
    quote_spanned! { Span::mixed_site().located_at(ty.span()) =>
        const _: () = ::std::assert!(
            ::tooltape::__private::is_harmless::<#ty>(),
            "a `Pure` tool may take only `RunInfo`, `Progress`, `Cancel`, `Clock` and `Random`: \
             everything else reads or changes the world, so declare `Read` or `Write`"
        );
    }
}

fn mentions_impl(ty: &Type) -> bool {
    quote!(#ty).to_string().split_whitespace().any(|word| word == "impl")
}

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
