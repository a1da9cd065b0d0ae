// SPDX-License-Identifier: GPL-2.0
/*
 * fields - the numbers of a model, as text
 *
 *	FIELD NUMBER
 *
 * Blanks or ends of lines separate words.  Fields that the text leaves out keep
 * their values.  flash/model.h has the fields.
 *
 * Tested by tests/vm/test_ssd.py.
 */
#include "ssd.h"
#include "../parse.h"

/* The name of a model that is none of the built-in ones. */
#define OWN_NAME	"own"
#define BLANKS		" \t\n"

/* Takes the next word of *@text; NULL at the end. */
static char *word_take(char **text)
{
	char *word;

	do
		word = strsep(text, BLANKS);
	while (word && !*word);
	return word;
}

static bool number_take(char **text, u64 most, u64 *number)
{
	const char *word = word_take(text);

	return word && isdigit(*word) && !kstrtou64(word, 10, number) &&
	       *number <= most;
}

static bool fields_read(struct flash_params *p, char *text)
{
	const struct flash_field *field;
	const char *name;
	u64 number;

	while ((name = word_take(&text))) {
		field = flash_field(name);
		if (!field) {
			pr_warn("mqfair-ssd: params: no field %s of a model\n",
				name);
			return false;
		}
		if (!number_take(&text, field->most, &number)) {
			pr_warn("mqfair-ssd: params: %s: use a number from 0 to %llu\n",
				name, field->most);
			return false;
		}
		flash_field_set(p, field, number);
	}
	return true;
}

int fields_parse(struct flash_params *p, const char *text, size_t count)
{
	const char *wrong = NULL;
	char *copy;
	int ret;

	if (!parse_is_text(text, count))
		return -EINVAL;
	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	ret = fields_read(p, copy) ? 0 : -EINVAL;
	kfree(copy);
	p->name = OWN_NAME;
	if (!ret)
		wrong = flash_params_wrong(p);
	if (!wrong)
		return ret;
	pr_warn("mqfair-ssd: params: %s\n", wrong);
	return -EINVAL;
}

ssize_t fields_show(const struct flash_params *p, char *page)
{
	const struct flash_field *field;
	ssize_t at = 0;

	for (field = flash_fields; field->name; field++)
		at += sysfs_emit_at(page, at, "%s %llu\n", field->name,
				    flash_field_get(p, field));
	return at;
}
