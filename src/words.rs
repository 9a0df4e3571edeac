//! Enums whose variants each have one word.

/// Declares an enum whose variants each have one word, which headers, metrics, logs and JSON show.
/// The word stands beside its variant.
///
/// `ALL` lists the variants in the order of their discriminants, so a variant indexes an array that
/// was made from it.
macro_rules! enum_of_words {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_about:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name {
            $($(#[$variant_about])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their discriminants.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word that is shown.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

pub(crate) use enum_of_words;
