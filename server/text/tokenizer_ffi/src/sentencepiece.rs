//! A sentencepiece model (`spiece.model`, `sentencepiece.bpe.model`, `tokenizer.model`).
//!
//! The file is a protocol buffer, `sentencepiece_model.proto` of the project sentencepiece. What ids the
//! pieces have, and which special tokens surround a text, is a matter of the model's class: without one
//! that is known, a text has the ids that sentencepiece itself gives it.

use std::collections::HashMap;

use serde_json::{json, Value};

use crate::classes::Family;
use crate::load::Config;
use crate::template::{bos_and_eos, special_token, template};
use crate::Failure;

const UNIGRAM: u64 = 1;
const BPE: u64 = 2;

const UNKNOWN: u64 = 2;
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;
const BYTE: u64 = 6;

#[derive(Clone)]
struct Piece {
    text: String,
    score: f64,
    kind: u64,
}

struct Model {
    pieces: Vec<Piece>,
    model_type: u64,
    charsmap: Vec<u8>,
    dummy_prefix: bool,
    remove_extra_spaces: bool,
}

impl Model {
    /// Metaspace leaves the mark out in front of a blank, which only stands there if blanks are kept.
    fn prefix_by_normalizer(&self) -> bool {
        self.dummy_prefix && (self.model_type == BPE || !self.remove_extra_spaces)
    }
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
}

/// The fields of one message of a protocol buffer.
struct Fields<'a> {
    left: &'a [u8],
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, Failure> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.left.split_first().ok_or_else(broken)?;
            self.left = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(broken())
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Failure> {
        if count > self.left.len() as u64 {
            return Err(broken());
        }
        let (taken, rest) = self.left.split_at(count as usize);
        self.left = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, Failure> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => {
                self.take(8)?;
                Field::Number(0)
            }
            2 => {
                let size = self.varint()?;
                Field::Bytes(self.take(size)?)
            }
            5 => Field::Float(f32::from_le_bytes(self.take(4)?.try_into().map_err(|_| broken())?)),
            _ => return Err(broken()),
        };
        Ok(Some((tag >> 3, field)))
    }
}

fn broken() -> Failure {
    Failure::invalid("the sentencepiece model is damaged: it is no protocol buffer of one")
}

fn parse_piece(bytes: &[u8]) -> Result<Piece, Failure> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: 1 };
    let mut fields = Fields { left: bytes };
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (1, Field::Bytes(text)) => {
                piece.text = String::from_utf8(text.to_vec()).map_err(|_| broken())?;
            }
            (2, Field::Float(score)) => piece.score = f64::from(score),
            (3, Field::Number(kind)) => piece.kind = kind,
            _ => {}
        }
    }
    Ok(piece)
}

fn parse(bytes: &[u8]) -> Result<Model, Failure> {
    let mut model = Model {
        pieces: Vec::new(),
        model_type: UNIGRAM,
        charsmap: Vec::new(),
        dummy_prefix: true,
        remove_extra_spaces: true,
    };
    let mut fields = Fields { left: bytes };
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (1, Field::Bytes(piece)) => model.pieces.push(parse_piece(piece)?),
            (2, Field::Bytes(spec)) => {
                let mut trainer = Fields { left: spec };
                while let Some((number, field)) = trainer.next()? {
                    if let (3, Field::Number(kind)) = (number, field) {
                        model.model_type = kind;
                    }
                }
            }
            (3, Field::Bytes(spec)) => {
                let mut normalizer = Fields { left: spec };
                while let Some((number, field)) = normalizer.next()? {
                    match (number, field) {
                        (2, Field::Bytes(map)) => model.charsmap = map.to_vec(),
                        (3, Field::Number(flag)) => model.dummy_prefix = flag != 0,
                        (4, Field::Number(flag)) => model.remove_extra_spaces = flag != 0,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if model.pieces.is_empty() {
        return Err(broken());
    }
    Ok(model)
}

fn plain(text: &str) -> Piece {
    Piece { text: text.into(), score: 0.0, kind: CONTROL }
}

/// The vocabulary as the class orders it, and its forms of one text and of two.
struct Layout {
    pieces: Vec<Piece>,
    single: String,
    pair: String,
}

impl Layout {
    fn new(pieces: Vec<Piece>, single: &str, pair: &str) -> Self {
        Layout { pieces, single: single.into(), pair: pair.into() }
    }
}

const ROBERTA_SINGLE: &str = "<s> $A </s>";
const ROBERTA_PAIR: &str = "<s> $A </s> </s> $B </s>";
const BERT_SINGLE: &str = "[CLS]:0 $A:0 [SEP]:0";
const BERT_PAIR: &str = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1";

/// The names of special tokens that the layouts below are written with.
const ROBERTA_NAMES: &[(&str, &str)] = &[
    ("bos_token", "<s>"), ("eos_token", "</s>"), ("sep_token", "</s>"), ("cls_token", "<s>"),
    ("unk_token", "<unk>"), ("pad_token", "<pad>"), ("mask_token", "<mask>"),
];
const T5_NAMES: &[(&str, &str)] =
    &[("eos_token", "</s>"), ("unk_token", "<unk>"), ("pad_token", "<pad>")];
const ALBERT_NAMES: &[(&str, &str)] =
    &[("cls_token", "[CLS]"), ("sep_token", "[SEP]"), ("mask_token", "[MASK]")];
const LLAMA_NAMES: &[(&str, &str)] = &[("bos_token", "<s>"), ("eos_token", "</s>")];

fn layout(model: &Model, family: Family, config: &Config) -> Result<Layout, Failure> {
    let all = || model.pieces.clone();
    let behind = |front: &[Piece], skip: usize, back: &[Piece]| -> Vec<Piece> {
        let middle = model.pieces.iter().skip(skip).cloned();
        front.iter().cloned().chain(middle).chain(back.iter().cloned()).collect()
    };
    let unknown = Piece { text: "<unk>".into(), score: 0.0, kind: UNKNOWN };
    config.want_fixed(match family {
        Family::XlmRoberta | Family::Camembert => ROBERTA_NAMES,
        Family::T5 => T5_NAMES,
        Family::Llama => LLAMA_NAMES,
        Family::Albert | Family::DebertaV2 | Family::BigBird => ALBERT_NAMES,
        _ => &[],
    })?;
    Ok(match family {
        Family::XlmRoberta => Layout::new(
            behind(
                &[plain("<s>"), plain("<pad>"), plain("</s>"), unknown],
                3,
                &[plain("<mask>")],
            ),
            ROBERTA_SINGLE,
            ROBERTA_PAIR,
        ),
        Family::Camembert => Layout::new(
            behind(
                &[plain("<s>NOTUSED"), plain("<pad>"), plain("</s>NOTUSED"), unknown,
                  Piece { score: -100.0, ..plain("<unk>NOTUSED") }],
                1,
                &[plain("<mask>")],
            ),
            ROBERTA_SINGLE,
            ROBERTA_PAIR,
        ),
        Family::T5 => {
            let count = extra_ids(config)?;
            let extra: Vec<Piece> =
                (0..count).rev().map(|i| plain(&format!("<extra_id_{}>", i))).collect();
            Layout::new(behind(&[], 0, &extra), "$A </s>", "$A </s> $B </s>")
        }
        Family::Llama => {
            let bos = config.flag("add_bos_token").ok_or_else(|| {
                Failure::unimplemented(
                    "tokenizer_config.json does not say add_bos_token, on which versions of \
                     transformers differ without tokenizer.json",
                )
            })?;
            let bos = bos.then_some("<s>");
            let eos = config.flag("add_eos_token").unwrap_or(false).then_some("</s>");
            let (single, pair) = bos_and_eos(bos, eos);
            Layout { pieces: all(), single, pair }
        }
        Family::DebertaV2 => {
            // The model may lack the mask, which then comes after all pieces.
            let has = model.pieces.iter().any(|piece| piece.text == "[MASK]");
            let mask = [plain("[MASK]")];
            let pieces = behind(&[], 0, if has { &[] } else { &mask });
            Layout::new(pieces, BERT_SINGLE, BERT_PAIR)
        }
        Family::Albert | Family::BigBird => Layout::new(all(), BERT_SINGLE, BERT_PAIR),
        _ => Layout::new(all(), "$A", "$A $B:1"),
    })
}

/// How many tokens <extra_id_0> and on T5 has.
fn extra_ids(config: &Config) -> Result<u64, Failure> {
    const MOST: u64 = 10_000;
    let Some(said) = config.value("extra_ids") else { return Ok(100) };
    said.as_u64().filter(|count| *count <= MOST).ok_or_else(|| {
        Failure::invalid(format!(
            "tokenizer_config.json: extra_ids is {}, it may be 0 to {}",
            said, MOST
        ))
    })
}

fn replace(pattern: Value, content: &str) -> Value {
    json!({"type": "Replace", "pattern": pattern, "content": content})
}

fn normalizer(model: &Model, family: Family, config: &Config) -> Value {
    // These classes leave all else of the model's normalizer out.
    match family {
        Family::BigBird => return replace(json!({"Regex": " {2,}"}), "\u{2581}"),
        Family::Llama => return Value::Null,
        _ => {}
    }
    let mut steps: Vec<Value> = Vec::new();
    if family == Family::Albert {
        steps.push(replace(json!({"String": "``"}), "\""));
        steps.push(replace(json!({"String": "''"}), "\""));
        if !config.flag("keep_accents").unwrap_or(false) {
            steps.push(json!({"type": "NFKD"}));
            steps.push(json!({"type": "StripAccents"}));
        }
    }
    let lowers = family == Family::Albert;
    if matches!(family, Family::Albert | Family::DebertaV2)
        && config.flag("do_lower_case").unwrap_or(lowers)
    {
        steps.push(json!({"type": "Lowercase"}));
    }
    if !model.charsmap.is_empty() {
        steps.push(
            json!({"type": "Precompiled", "precompiled_charsmap": base64::encode(&model.charsmap)}),
        );
    }
    if model.remove_extra_spaces {
        steps.push(json!({"type": "Strip", "strip_left": true, "strip_right": true}));
        steps.push(replace(json!({"Regex": " {2,}"}), " "));
    }
    if model.prefix_by_normalizer() {
        steps.push(json!({"type": "Prepend", "prepend": "\u{2581}"}));
    }
    if model.model_type == BPE {
        steps.push(replace(json!({"String": " "}), "\u{2581}"));
    }
    json!({"type": "Sequence", "normalizers": steps})
}

fn pre_tokenizer(model: &Model, family: Family, config: &Config) -> Value {
    let metaspace = |scheme: &str, split: bool| {
        json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme,
               "split": split})
    };
    if family == Family::Llama {
        // Whether the mark stands also after special tokens in a text.
        return match (config.flag("add_prefix_space"), config.flag("legacy")) {
            (Some(false), _) => metaspace("never", false),
            (_, Some(true)) => metaspace("always", false),
            _ => metaspace("first", false),
        };
    }
    if model.model_type == BPE {
        return Value::Null;
    }
    let by_metaspace = model.dummy_prefix && !model.prefix_by_normalizer();
    metaspace(if by_metaspace { "always" } else { "never" }, true)
}

/// The merges that sentencepiece's scores mean: every way to write a piece as two others, best first.
fn merges(pieces: &[Piece], ids: &HashMap<&str, usize>) -> Vec<[String; 2]> {
    let mut found: Vec<(f64, usize, usize, [String; 2])> = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.kind == 1 || piece.kind == USER_DEFINED) {
        let mut local: Vec<(usize, usize, &str, &str)> = Vec::new();
        for (at, _) in piece.text.char_indices().skip(1) {
            let (left, right) = piece.text.split_at(at);
            if let (Some(l), Some(r)) = (ids.get(left), ids.get(right)) {
                local.push((*l, *r, left, right));
            }
        }
        local.sort_by_key(|(l, r, _, _)| (*l, *r));
        for (_, _, left, right) in local {
            found.push((
                piece.score,
                left.chars().count(),
                right.chars().count(),
                [left.to_string(), right.to_string()],
            ));
        }
    }
    found.sort_by(|a, b| {
        b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2))
    });
    found.into_iter().map(|(_, _, _, pair)| pair).collect()
}

fn decoder(model: &Model) -> Value {
    if model.model_type != BPE {
        let scheme = if model.dummy_prefix { "always" } else { "never" };
        return json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme,
                      "split": true});
    }
    let mut steps = vec![
        replace(json!({"String": "\u{2581}"}), " "),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if model.dummy_prefix {
        steps.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    json!({"type": "Sequence", "decoders": steps})
}

pub fn convert(bytes: &[u8], family: Family, config: &Config) -> Result<Value, Failure> {
    let model = parse(bytes)?;
    let layout = layout(&model, family, config)?;
    let pieces = &layout.pieces;
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for (id, piece) in pieces.iter().enumerate() {
        ids.entry(piece.text.as_str()).or_insert(id);
    }
    let unknown = pieces.iter().position(|piece| piece.kind == UNKNOWN);
    let byte_fallback = pieces.iter().any(|piece| piece.kind == BYTE);
    let added: Vec<Value> = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| matches!(piece.kind, UNKNOWN | CONTROL))
        .map(|(id, piece)| special_token(id, &piece.text, piece.text == "<mask>"))
        .chain(pieces.iter().enumerate().filter(|(_, piece)| piece.kind == USER_DEFINED).map(
            |(id, piece)| {
                json!({"id": id, "content": piece.text, "single_word": false, "lstrip": false,
                       "rstrip": false, "normalized": false, "special": false})
            },
        ))
        .collect();
    let model_json = match model.model_type {
        UNIGRAM => {
            let vocab: Vec<(&str, f64)> =
                pieces.iter().map(|piece| (piece.text.as_str(), piece.score)).collect();
            json!({"type": "Unigram", "unk_id": unknown, "vocab": vocab,
                   "byte_fallback": byte_fallback})
        }
        BPE => json!({
            "type": "BPE", "dropout": null, "fuse_unk": true, "byte_fallback": byte_fallback,
            "unk_token": unknown.map(|id| pieces[id].text.clone()),
            "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "vocab": ids, "merges": merges(pieces, &ids)}),
        other => {
            return Err(Failure::invalid(format!(
                "the sentencepiece model is of type {}; unigram (1) and BPE (2) are supported",
                other
            )))
        }
    };
    let normalizer = normalizer(&model, family, config);
    Ok(json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer(&model, family, config),
        "post_processor": template(&layout.single, &layout.pair, &|token| ids.get(token).copied())?,
        "decoder": decoder(&model),
        "model": model_json,
    }))
}
