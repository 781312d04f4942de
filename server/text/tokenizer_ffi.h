/* The C interface of server/text/tokenizer_ffi, a static library in Rust: tokenizers, chat
 * templates and grammars by the crates `tokenizers`, `minijinja` and `llguidance`.
 *
 * Functions that return an int32_t return 0, or a code of absl::StatusCode and a sentence in
 * `error`, which may be null; without memory for the sentence it is empty. Nothing unwinds out of
 * them, and nothing ends the process: a panic inside is the code INTERNAL, a failed allocation
 * RESOURCE_EXHAUSTED. A tokenizer may be used by several threads at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct reprise_tokenizer;
struct reprise_first;

/* Bytes of the library, freed by reprise_text_free; null where there are none. */
struct reprise_text {
  char* data;
  size_t size;
};

/* What a call may take. Null stands for no limit. */
struct reprise_watch {
  size_t max_bytes; /* that live at once, more is INVALID_ARGUMENT; 0: no limit */
  /* Asked now and then: 0, or the code to end the call with. Null: it runs to its end. Must not
   * unwind. */
  int32_t (*ends)(void* context);
  void* context;
};

/* The kind of file that `data` of reprise_tokenizer_load is. */
enum {
  REPRISE_TOKENIZER_JSON = 0,
  REPRISE_VOCAB_TXT = 1,        /* WordPiece */
  REPRISE_SENTENCEPIECE = 2,    /* spiece.model, tokenizer.model */
  REPRISE_VOCAB_AND_MERGES = 3, /* vocab.json in `data`, merges.txt in `merges` */
};

enum { REPRISE_TRUNCATE_NONE = 0, REPRISE_TRUNCATE_RIGHT = 1, REPRISE_TRUNCATE_LEFT = 2 };
enum { REPRISE_OFFSETS_NONE = 0, REPRISE_OFFSETS_BYTES = 1, REPRISE_OFFSETS_CHARS = 2 };

struct reprise_encode_options {
  int32_t add_special;
  int32_t offsets;
  int32_t truncate;
  size_t max_tokens;  /* of the result, special ones included; 0: no limit */
  size_t most_tokens; /* of the texts before truncation; 0: no limit */
};

/* Arrays of `count` elements, freed by reprise_encoded_free; `offsets` has a begin and an end for
 * each, or is null. */
struct reprise_encoded {
  size_t count;
  const uint32_t* ids;
  const uint32_t* type_ids;
  const uint32_t* special; /* 1: a special token that stands in no text */
  const size_t* offsets;
  size_t full_count; /* tokens before truncation, as far as they were counted */
  void* owner;
};

/* Bytes that the caller lends; null where there are none. */
struct reprise_lent {
  const char* data;
  size_t size;
};

/* The texts of the files of one tokenizer; each but `data` may be empty. */
struct reprise_tokenizer_files {
  int32_t kind;
  int32_t lower; /* texts are lowered first, as Python's str.lower does it */
  struct reprise_lent data;
  struct reprise_lent merges;
  struct reprise_lent tokenizer_config;   /* tokenizer_config.json */
  struct reprise_lent added_tokens;       /* added_tokens.json */
  struct reprise_lent special_tokens_map; /* special_tokens_map.json */
  struct reprise_lent model_config;       /* config.json */
};

/* Errors: INVALID_ARGUMENT naming the file; UNIMPLEMENTED naming a class of tokenizers, or a member
 * of a file, that is not known. */
int32_t reprise_tokenizer_load(const struct reprise_tokenizer_files* files,
                               const struct reprise_watch* watch, struct reprise_tokenizer** out,
                               struct reprise_text* error);
void reprise_tokenizer_free(struct reprise_tokenizer* tokenizer);

/* `pair` is null where there is no second text. Errors: INVALID_ARGUMENT for what is no UTF-8 or
 * too long, the codes of the watch, INTERNAL. */
int32_t reprise_tokenizer_encode(const struct reprise_tokenizer* tokenizer, const char* text,
                                 size_t size, const char* pair, size_t pair_size,
                                 const struct reprise_encode_options* options,
                                 const struct reprise_watch* watch, struct reprise_encoded* out,
                                 struct reprise_text* error);
/* The first text of several pairs, which is tokenized once; freed by reprise_first_free. The
 * options are those of the pairs, which have no offsets. */
int32_t reprise_tokenizer_first(const struct reprise_tokenizer* tokenizer, const char* text,
                                size_t size, const struct reprise_encode_options* options,
                                const struct reprise_watch* watch, struct reprise_first** out,
                                struct reprise_text* error);
/* How many tokens it holds: those that a pair may keep. */
size_t reprise_first_tokens(const struct reprise_first* first);
/* As reprise_tokenizer_encode of that text and `pair`, with the same tokenizer. */
int32_t reprise_first_pair(const struct reprise_tokenizer* tokenizer,
                           const struct reprise_first* first, const char* pair, size_t pair_size,
                           const struct reprise_watch* watch, struct reprise_encoded* out,
                           struct reprise_text* error);
void reprise_first_free(struct reprise_first* first);
void reprise_encoded_free(struct reprise_encoded* encoded);

int32_t reprise_tokenizer_decode(const struct reprise_tokenizer* tokenizer, const uint32_t* ids,
                                 size_t count, int32_t skip_special,
                                 const struct reprise_watch* watch, struct reprise_text* out,
                                 struct reprise_text* error);
/* The token as the vocabulary writes it; empty where there is none. */
int32_t reprise_tokenizer_token(const struct reprise_tokenizer* tokenizer, uint32_t id,
                                struct reprise_text* out, struct reprise_text* error);
/* The id of a token, or -1. */
int64_t reprise_tokenizer_id(const struct reprise_tokenizer* tokenizer, const char* token,
                             size_t size);
/* How many ids there are. */
size_t reprise_tokenizer_size(const struct reprise_tokenizer* tokenizer);
/* 1 where the files say that the front of a text is cut. */
int32_t reprise_tokenizer_truncates_left(const struct reprise_tokenizer* tokenizer);
/* The mark of tokens that go on with a word ("##") and the token of what no other has; each is
 * empty where there is none. */
int32_t reprise_tokenizer_marks(const struct reprise_tokenizer* tokenizer,
                                struct reprise_text* prefix, struct reprise_text* unknown);

/* The bytes that the token stands for, which need not be UTF-8; empty where there is none. */
int32_t reprise_tokenizer_bytes(const struct reprise_tokenizer* tokenizer, uint32_t id,
                                struct reprise_text* out, struct reprise_text* error);

/* 1 where the token is special: it stands in no text. */
int32_t reprise_tokenizer_is_special(const struct reprise_tokenizer* tokenizer, uint32_t id);

struct reprise_chat;

/* A chat template. Errors: INVALID_ARGUMENT naming the line. */
int32_t reprise_chat_load(const char* source, size_t size, const struct reprise_watch* watch,
                          struct reprise_chat** out, struct reprise_text* error);
void reprise_chat_free(struct reprise_chat* chat);
/* `context`: a JSON object of what the template may ask for; `now`: seconds since 1970. Errors:
 * INVALID_ARGUMENT naming the line, also for a template that takes too many steps. */
int32_t reprise_chat_render(const struct reprise_chat* chat, const char* context, size_t size,
                            int64_t now, const struct reprise_watch* watch,
                            struct reprise_text* out, struct reprise_text* error);

/* What all grammars of a tokenizer share; may be used by several threads at once. */
struct reprise_grammars;
/* Which tokens may follow, for one text: used by one thread at a time. */
struct reprise_grammar;

enum {
  REPRISE_JSON_SCHEMA = 0,
  REPRISE_REGEX = 1,
  REPRISE_LARK = 2,
  REPRISE_CHOICE = 3, /* a JSON list of texts */
};

/* `eos`: the ids that end an answer; `vocabulary`: the ids that the model has scores for. */
int32_t reprise_grammars_make(const struct reprise_tokenizer* tokenizer, const uint32_t* eos,
                              size_t count, size_t vocabulary, const struct reprise_watch* watch,
                              struct reprise_grammars** out, struct reprise_text* error);
void reprise_grammars_free(struct reprise_grammars* grammars);
/* Errors: INVALID_ARGUMENT saying what is wrong with the grammar, or that it is too large. */
int32_t reprise_grammar_compile(const struct reprise_grammars* grammars, int32_t kind,
                                const char* text, size_t size, const struct reprise_watch* watch,
                                struct reprise_grammar** out, struct reprise_text* error);
/* A copy is another text from where the grammar is. */
int32_t reprise_grammar_copy(const struct reprise_grammar* grammar,
                             const struct reprise_watch* watch, struct reprise_grammar** out,
                             struct reprise_text* error);
void reprise_grammar_free(struct reprise_grammar* grammar);
/* Sets bit i % 32 of word i / 32 where token i may follow, and clears the others. */
int32_t reprise_grammar_mask(struct reprise_grammar* grammar, uint32_t* bits, size_t words,
                             const struct reprise_watch* watch, struct reprise_text* error);
/* `id` follows. `complete`: 1 where nothing may follow it. */
int32_t reprise_grammar_take(struct reprise_grammar* grammar, uint32_t id,
                             const struct reprise_watch* watch, int32_t* complete,
                             struct reprise_text* error);

void reprise_text_free(struct reprise_text* text);

#ifdef __cplusplus
}
#endif
