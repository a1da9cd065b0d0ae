// SPDX-License-Identifier: GPL-2.0
/* The fields of a model by name, and their bounds. */
#include "tests/unit/unit.h"
#include "fixture.h"

/* Each field has bytes of its own, and together they fill the structure. */
static void each_field_is_set_and_read_alone(void **state)
{
	const struct flash_field *field;
	u64 value = 1;

	(void)state;
	for (field = flash_fields; field->name; field++) {
		struct flash_params p = { .name = "x" }, zero = p;
		const struct flash_field *other;

		assert_ptr_equal(flash_field(field->name), field);
		flash_field_set(&p, field, value);
		for (other = flash_fields; other->name; other++)
			assert_int_equal(flash_field_get(&p, other),
					 other == field ? value : 0);
		flash_field_set(&p, field, field->most);
		assert_int_equal(flash_field_get(&p, field), field->most);
		flash_field_set(&p, field, 0);
		assert_memory_equal(&p, &zero, sizeof(p));
	}
	assert_null(flash_field("name"));
	assert_null(flash_field(""));
}

static void built_in_models_are_copied_by_their_fields(void **state)
{
	const struct flash_field *field;
	const struct flash_params *p;

	(void)state;
	for (p = flash_models; p->name; p++) {
		struct flash_params copy = { .name = p->name };

		for (field = flash_fields; field->name; field++) {
			assert_true(flash_field_get(p, field) <= field->most);
			flash_field_set(&copy, field,
					flash_field_get(p, field));
		}
		assert_memory_equal(&copy, p, sizeof(copy));
	}
}

/* The greatest values of all fields at once are refused without an overflow. */
static void greatest_values_are_out_of_bounds_together(void **state)
{
	struct flash_params p = { .name = "x" };
	const struct flash_field *field;

	(void)state;
	for (field = flash_fields; field->name; field++)
		flash_field_set(&p, field, field->most);
	assert_non_null(flash_params_wrong(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_set_and_read_alone),
		cmocka_unit_test(built_in_models_are_copied_by_their_fields),
		cmocka_unit_test(greatest_values_are_out_of_bounds_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
