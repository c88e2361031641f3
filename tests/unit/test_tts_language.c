/* test_tts_language.c - the language of a text is told by its frequent words. */
#include "tts_helpers.h"

#include "jobs/tts/state.h"

static const struct {
	const char *code, *text;
} texts[] = {
	{"en",
	 "The old keeper climbed the stairs of the lighthouse, and at the top he lit the lamp that "
	 "had been cold for a year. It was not easy, but he was there with his dog."},
	{"de", "Der alte Wärter stieg die Treppe des Leuchtturms hinauf, und oben zündete er die "
	       "Lampe an, "
	       "die seit einem Jahr kalt war. Es war nicht leicht, aber er war mit dem Hund auf "
	       "dem Turm."},
	{"fr", "Le vieux gardien monta les marches du phare, et en haut il alluma la lampe qui "
	       "était froide "
	       "depuis une année. Ce n'est pas facile, mais il est dans la tour avec le chien."},
	{"es", "El viejo guardián subió las escaleras del faro, y en lo alto encendió la lámpara "
	       "que estaba "
	       "fría. No es fácil, pero el hombre está en la torre con su perro y no se va."},
	{"it", "Il vecchio guardiano salì le scale del faro, e in cima accese la lampada che era "
	       "fredda da un "
	       "anno. Non è facile, ma il guardiano è nella torre con il cane e non ha più paura."},
	{"pt", "O velho faroleiro subiu as escadas do farol, e no alto acendeu a lâmpada que "
	       "estava fria. Não "
	       "é fácil, mas ele foi para a torre com o seu cão, e não tem mais medo do mar."},
	{"nl",
	 "De oude wachter klom de trap van de vuurtoren op, en boven stak hij de lamp aan die een "
	 "jaar "
	 "koud was. Het is niet makkelijk, maar hij is er met zijn hond en dat is voor hem goed."},
	{"pl",
	 "Stary latarnik wszedł na schody i zapalił lampę, która od roku była zimna. To nie jest "
	 "łatwe, "
	 "ale on jest w wieży z psem i nie boi się, że to się nie uda. Tak to jest po latach."},
};

static void languages_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *got = language_guess(texts[i].text);
		if (!got || strcmp(got, texts[i].code) != 0)
			fail_msg("%s: got %s", texts[i].code, got ? got : "none");
	}
}

static void what_cannot_be_told_is_unknown(void **state)
{
	static const char *const none[] = {
		"", "Hello there.", "Der Hund.", "Nginx Redis Kafka Postgres 1 2 3 4 5 6 7 8 9",
		/* half of each */
		"The keeper is in the tower and it was not easy for him, but he had been there. "
		"Der Wärter ist auf dem Turm und das war nicht leicht für die Frau, aber sie ist "
		"da."};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (language_guess(none[i]))
			fail_msg("\"%s\": got %s", none[i], language_guess(none[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(languages_are_told),
		cmocka_unit_test(what_cannot_be_told_is_unknown),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
