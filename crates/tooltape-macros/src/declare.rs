//! What stands in the parentheses of `#[tool(…)]`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitBool, LitStr, Path, Result, Token, Type, parenthesized};

/// What a tool declares, as statements on a `spec`.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) name: Option<String>,
    pub(crate) blocking: bool,
    pub(crate) pure: bool,
    /// The function that says what a call touches.
    pub(crate) touches: Option<Path>,
    pub(crate) steps: Vec<TokenStream>,
}

const ACCESSES: [&str; 3] = ["Pure", "Read", "Write"];
const OWN: [&str; 13] = [
    "blocking",
    "name",
    "version",
    "output",
    "needs",
    "touches",
    "reconcile",
    "preview",
    "workspace_root",
    "trusted",
    "untrusted",
    "internal",
    "secret",
];
const FLAGS: [&str; 9] = [
    "filesystem",
    "process",
    "spend",
    "confirm",
    "redact",
    "exclusive",
    "recursive",
    "aborts_siblings",
    "counted",
];
const WORDS: [(&str, &str); 4] =
    [("determinism", "Determinism"), ("repeat", "Repeat"), ("reach", "Reach"), ("vote", "Vote")];
const TIMES: [&str; 2] = ["wall_ms", "idle_ms"];
const SIZES: [&str; 4] = ["memory", "fuel", "output_bytes", "concurrency"];
const RETRIES: [&str; 3] = ["attempts", "pause_ms", "pause_ms_max"];
const HISTORY_TEXTS: [&str; 2] = ["dedupe_by", "summarise_by"];
const HISTORY_FLAGS: [&str; 2] = ["compact", "pin"];

impl Parse for Declared {
    fn parse(input: ParseStream<'_>) -> Result<Declared> {
        let mut declared = Declared::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("`{key}` is declared twice")));
            }
            if let Some(first) = seen.first()
                && ACCESSES.iter().any(|access| key == access)
            {
                return Err(misplaced(&key, first));
            }
            declared.item(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(declared)
    }
}

impl Declared {
    fn item(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        // Hygienic, like the `spec` that these statements are about.
        let spec = Ident::new("spec", Span::mixed_site());
        let word = key.to_string();
        let step = match word.as_str() {
            "Pure" => {
                self.pure = true;
                quote! { #spec.effects = ::tooltape::Effects::pure(); }
            }
            "Read" => quote! { #spec.effects = ::tooltape::Effects::read(); },
            "Write" => quote! { #spec.effects.access = ::tooltape::Access::Write; },
            "blocking" => {
                self.blocking = true;
                quote! { #spec.blocking = true; }
            }
            "name" => {
                self.name = Some(text(input)?.value());
                return Ok(());
            }
            "version" => {
                let version = text(input)?;
                quote! { #spec = #spec.version(#version); }
            }
            "output" => {
                input.parse::<Token![=]>()?;
                let ty: Type = input.parse()?;
                quote! { #spec = #spec.output(::tooltape::__private::schema_of::<#ty>()); }
            }
            "needs" => {
                let scopes = capabilities(input)?;
                quote! { #(#spec = #spec.needs(#scopes);)* }
            }
            "touches" if self.pure => return Err(untouching(key)),
            "touches" => {
                input.parse::<Token![=]>()?;
                self.touches = Some(input.parse()?);
                return Ok(());
            }
            "reconcile" => {
                input.parse::<Token![=]>()?;
                let path: Path = input.parse()?;
                let name = quote!(#path).to_string().replace(' ', "");
                quote! { #spec = #spec.reconcile(::tooltape::Reconcile::by(#name, #path)); }
            }
            "preview" => {
                input.parse::<Token![=]>()?;
                let path: Path = input.parse()?;
                let name = quote!(#path).to_string().replace(' ', "");
                quote! { #spec = #spec.preview(::tooltape::Preview::by(#name, #path)); }
            }
            "workspace_root" => {
                let root = text(input)?;
                quote! { #spec.effects.workspace_root = ::std::option::Option::Some(#root.into()); }
            }
            "trusted" => label(&spec, quote!(::tooltape::Label::default())),
            "untrusted" => label(
                &spec,
                quote!(::tooltape::Label::untrusted(::std::clone::Clone::clone(&#spec.name))),
            ),
            "internal" => label(&spec, quote!(::tooltape::Label::internal())),
            "secret" => {
                let name = text(input)?;
                label(&spec, quote!(::tooltape::Label::secret(#name)))
            }
            word => field(&spec, key, word, input)?,
        };
        self.steps.push(step);
        Ok(())
    }
}

/// Adds to the label of all results.
fn label(spec: &Ident, label: TokenStream) -> TokenStream {
    quote! {
        #spec.label = ::std::option::Option::Some(
            #spec.label.take().unwrap_or_default().join(&#label)
        );
    }
}

/// Sets one field of the spec, by the table that names it.
fn field(spec: &Ident, key: &Ident, word: &str, input: ParseStream<'_>) -> Result<TokenStream> {
    if let Some((_, of)) = WORDS.iter().find(|(field, _)| *field == word) {
        input.parse::<Token![=]>()?;
        let (of, value) = (format_ident!("{of}"), input.parse::<Ident>()?);
        return Ok(quote! { #spec.effects.#key = ::tooltape::#of::#value; });
    }
    Ok(match word {
        _ if FLAGS.contains(&word) => {
            let flag = flag(input)?;
            quote! { #spec.effects.#key = #flag; }
        }
        _ if TIMES.contains(&word) => {
            let field = format_ident!("{}", word.trim_end_matches("_ms"), span = key.span());
            let bound = bound(input, |ms| quote!(::std::time::Duration::from_millis(#ms)))?;
            quote! { #spec.bounds.#field = #bound; }
        }
        _ if SIZES.contains(&word) => {
            let bound = bound(input, |size| quote!(#size))?;
            quote! { #spec.bounds.#key = #bound; }
        }
        _ if RETRIES.contains(&word) => {
            input.parse::<Token![=]>()?;
            let value: Expr = input.parse()?;
            quote! { #spec.retry.#key = #value; }
        }
        _ if HISTORY_TEXTS.contains(&word) => {
            let argument = text(input)?;
            quote! { #spec.history.#key = ::std::option::Option::Some(#argument.into()); }
        }
        _ if HISTORY_FLAGS.contains(&word) => {
            let flag = flag(input)?;
            quote! { #spec.history.#key = #flag; }
        }
        _ => return Err(unknown(key)),
    })
}

fn misplaced(access: &Ident, first: &Ident) -> Error {
    let message = match ACCESSES.iter().any(|access| first == access) {
        true => format!("a tool has one access: it is `{first}` or `{access}`"),
        false => format!("the access stands first: write `#[tool({access}, {first}, ..)]`"),
    };
    Error::new(access.span(), message)
}

fn untouching(key: &Ident) -> Error {
    let message =
        "a `Pure` tool touches nothing: leave out `touches`, or declare `Read` or `Write`";
    Error::new(key.span(), message)
}

fn unknown(key: &Ident) -> Error {
    let known = ACCESSES
        .into_iter()
        .chain(OWN)
        .chain(WORDS.map(|(field, _)| field))
        .chain(FLAGS)
        .chain(TIMES)
        .chain(SIZES)
        .chain(RETRIES)
        .chain(HISTORY_TEXTS)
        .chain(HISTORY_FLAGS);
    let known: Vec<_> = known.map(|known| format!("`{known}`")).collect();
    let message = format!("a tool cannot declare `{key}`, expected one of {}", known.join(", "));
    Error::new(key.span(), message)
}

fn text(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// A bare word means yes; `= false` says no.
fn flag(input: ParseStream<'_>) -> Result<bool> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        return Ok(input.parse::<LitBool>()?.value);
    }
    Ok(true)
}

/// A number, or `unlimited` written out.
fn bound(input: ParseStream<'_>, at: impl Fn(Expr) -> TokenStream) -> Result<TokenStream> {
    input.parse::<Token![=]>()?;
    if input.fork().parse::<Ident>().is_ok_and(|word| word == "unlimited") {
        input.parse::<Ident>()?;
        return Ok(quote!(::tooltape::Bound::Unlimited));
    }
    let value = at(input.parse()?);
    Ok(quote!(::tooltape::Bound::At(#value)))
}

/// Capabilities in parentheses, each with its three parts.
fn capabilities(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let inside;
    parenthesized!(inside in input);
    let capabilities = Punctuated::<LitStr, Token![,]>::parse_terminated(&inside)?;
    let whole = |text: &str| {
        let parts: Vec<_> = text.splitn(3, ':').collect();
        parts.len() == 3 && parts.iter().all(|part| !part.is_empty())
    };
    match capabilities.iter().find(|capability| !whole(&capability.value())) {
        None => Ok(capabilities.into_iter().collect()),
        Some(found) => {
            let message = "a capability has the form `domain:action:scope`, such as \
                           `net:get:api.example.com`";
            Err(Error::new(found.span(), message))
        }
    }
}
