// SPDX-License-Identifier: GPL-2.0
/* Reads trace files: see replay.h. */
#include "replay.h"

#include "text.h"

enum {
	SECTOR		= 512,
	LINE_ROOM	= 1024,
	WORDS		= 4,	/* the source is the fifth, and is skipped */
};

#define NS_MOST		(1ULL << 62)
#define OFFSET_MOST	(1ULL << 50)

static const char head[] = "mqfair trace 1";
static const char *const op_names[] = { "read", "write", NULL };

struct replay {
	FILE *file;
	const char *path;	/* of the caller */
	u32 most_bytes;
	u64 end;		/* 0: any */
	u64 line;
	u64 last_ns;
	char wrong[512];	/* the first message, or empty */
};

static bool fault(struct replay *r, const char *value, const char *remedy)
{
	struct text out;

	if (r->wrong[0])
		return false;
	out = text_of(r->wrong, sizeof(r->wrong));
	text_add(&out, "%s:%llu: '%.80s': %s", r->path, r->line, value, remedy);
	return false;
}

/* Reads the next line into @line, without its end.  False at the end. */
static bool next_line(struct replay *r, char *line)
{
	if (!fgets(line, LINE_ROOM, r->file)) {
		if (ferror(r->file))
			fault(r, strerror(errno), "the file cannot be read");
		return false;
	}
	r->line++;
	line[strcspn(line, "\r\n")] = '\0';
	return true;
}

struct replay *replay_open(const char *path, u32 most_bytes, u64 end)
{
	struct replay *r = port_zalloc(sizeof(*r));
	char line[LINE_ROOM] = "";

	if (!r)
		return NULL;
	r->path = path;
	r->most_bytes = most_bytes;
	r->end = end;
	r->file = fopen(path, "r");
	if (!r->file)
		fault(r, strerror(errno), "the file cannot be read");
	else if (!next_line(r, line) || strcmp(line, head))
		fault(r, line, "the first line is 'mqfair trace 1'");
	return r;
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	if (r->file)
		fclose(r->file);
	port_free(r);
}

/* Cuts @line into its first words; returns their number. */
static u32 cut(char *line, char *word[WORDS])
{
	char *rest = NULL, *next = strtok_r(line, " \t", &rest);
	u32 nr = 0;

	for (; next && nr < WORDS; next = strtok_r(NULL, " \t", &rest))
		word[nr++] = next;
	return nr;
}

static bool parse(struct replay *r, char *line, struct replay_request *q)
{
	char *word[WORDS];
	u64 bytes;

	if (cut(line, word) < WORDS)
		return fault(r, line, "write NS OPERATION OFFSET BYTES");
	if (!text_number(word[0], r->last_ns, NS_MOST, &q->at_ns))
		return fault(r, word[0], "a time in ns, not before the last");
	q->op = (enum io_op)text_find(op_names, word[1]);
	if (!op_names[q->op])
		return fault(r, word[1], "use read or write");
	if (!text_number(word[2], 0, OFFSET_MOST, &q->offset) ||
	    q->offset % SECTOR)
		return fault(r, word[2], "an offset is a multiple of 512");
	if (!text_number(word[3], SECTOR, r->most_bytes, &bytes) ||
	    bytes % SECTOR)
		return fault(
			r, word[3],
			"a size is a multiple of 512, up to that of the load");
	if (r->end && q->offset + bytes > r->end)
		return fault(r, word[2], "the request ends beyond the drive");
	q->bytes = (u32)bytes;
	r->last_ns = q->at_ns;
	return true;
}

bool replay_next(struct replay *r, struct replay_request *request)
{
	char line[LINE_ROOM];

	if (replay_wrong(r))
		return false;
	do {
		if (!next_line(r, line))
			return false;
	} while (line[0] == '#' || !line[0]);
	return parse(r, line, request);
}

const char *replay_wrong(const struct replay *r)
{
	return r->wrong[0] ? r->wrong : NULL;
}
