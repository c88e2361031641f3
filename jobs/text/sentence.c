/* sentence.c - where a sentence or a clause of a text ends, by the rules of its language */
#include "script.h"

#include <ctype.h>
#include <string.h>

/* ---- characters ---- */

static bool is_closing(uint32_t c)
{
	return c == '"' || c == '\'' || c == ')' || c == ']' || c == '}' || c == 0xbb ||
	       c == 0x2019 || c == 0x201c || c == 0x201d || c == 0x300d || c == 0x300f ||
	       c == 0xff09;
}

static bool is_opening(uint32_t c)
{
	return c == '"' || c == '\'' || c == '(' || c == '[' || c == '{' || c == 0xab ||
	       c == 0xbb || c == 0x2018 || c == 0x201a || c == 0x201c || c == 0x201e || c == 0xa1 ||
	       c == 0xbf;
}

static bool is_wide_stop(uint32_t c)
{
	return c == 0x3002 || c == 0xff01 || c == 0xff1f || c == 0xff61;
}

static bool is_stop(uint32_t c)
{
	return c == '.' || c == '!' || c == '?' || c == 0x2026 || c == 0x964 || c == 0x6d4 ||
	       c == 0x61f || is_wide_stop(c);
}

static bool is_wide_comma(uint32_t c)
{
	return c == 0x3001 || c == 0xff0c || c == 0xff1b || c == 0xff1a;
}

static bool is_comma(uint32_t c)
{
	return c == ',' || c == ';' || c == ':' || c == 0x60c || c == 0x61b || c == 0x2014 ||
	       c == 0x2013 || is_wide_comma(c);
}

/* Thai writes no blanks between words: a blank ends a phrase. */
static bool is_thai(uint32_t c)
{
	return c >= 0xe01 && c <= 0xe5b;
}

/* Small letters of the Latin, Greek and Cyrillic scripts. */
static bool is_small(uint32_t c)
{
	if (c < 0x80)
		return islower((int)c);
	if (c >= 0x100 && c < 0x180) /* pairs: capital, then small; two ranges begin odd */
		return ((c >= 0x139 && c <= 0x148) || c >= 0x179) ? c % 2 == 0 : c % 2 == 1;
	return (c >= 0xdf && c <= 0xff && c != 0xf7) || (c >= 0x3ac && c <= 0x3ce) ||
	       (c >= 0x430 && c <= 0x45f);
}

uint32_t heading_fold(uint32_t c)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
	    (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 0x20;
	if (c >= 0x400 && c <= 0x40f)
		return c + 0x50;
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
		return c + (c & 1);
	if (c >= 0x100 && c <= 0x177)
		return c | 1;
	return c;
}

/* Steps back over one character of valid UTF-8. */
static const char *step_back(const char *text, const char *at)
{
	do
		at--;
	while (at > text && ((unsigned char)*at & 0xc0) == 0x80);
	return at;
}

static uint32_t char_at(const char *at)
{
	return utf8_next(&at);
}

/* ---- rules ---- */

/* What a full stop behind a short word means. Words are small, without their stop, between blanks.
 * The lists follow the suppressions of CLDR's segments and the use of dictionaries. */
struct rules {
	const char *language;
	const char *never;   /* no sentence ends here: a name or a number follows */
	const char *numbers; /* the same, if a number follows; else they are words */
	const char *may;     /* a sentence ends here only if a word of `begins` follows */
	/* Words with a capital that often begin a sentence and are no names. Also decides whether a
	 * single letter ("J.") or inner stops ("U.S.") end a sentence. */
	const char *begins;
	bool ordinals; /* "3." is "third" before a word that is not in `begins` */
};

/* clang-format off */
static const struct rules all_rules[] = {
	{"en",
	 " mr mrs ms mx dr prof gen col capt cpt lt sgt cmdr adm maj rev hon gov sen rep pres msgr messrs mt e.g i.e viz cf approx ",
	 " no nos nr fig figs vol vols art ch chap sec par p pp ed eq tab ex app approx ca c ",
	 " st jr sr vs etc al inc ltd co corp bros dept est ave blvd rd jan feb mar apr jun jul aug sep sept oct nov dec a.m p.m u.s u.k ph.d m.d b.c a.d ",
	 " The A An He She It They We I You There Then This That These Those But And Or So If In On At When While After Before As For From With By To Of "
	 "His Her Its Their My Our Your What Who Why How Where Now Here No Not Yes All Some Many Most Only Even Still Later Today Yesterday However ", false},
	{"de",
	 " dr prof hr hrn fr frl st dipl ing bzw bspw vgl ca evtl ggf ggfs insb insbes inkl exkl sog zzgl abzgl max med phil jur rer nat z.b d.h u.a i.d.r m.e o.g s.o s.u v.a "
	 "hl kgl ev kath geb gest verh gegr ehem gen allg urspr bes dgl ",
	 " nr nrn abb abs art bd bde kap whg s ss tab tel ziff fn rn hs jg jh bl anm vers ",
	 " usw etc ff f u.s.w u.v.m str pl jh jhd co mio mrd jan feb apr jun jul aug sep sept okt nov dez mo di mi fr sa so std min sek ",
	 " Der Die Das Den Dem Des Ein Eine Einer Einem Einen Er Sie Es Wir Ihr Ich Du Man Und Aber Oder Doch Denn Dann Da Dort Hier Jetzt Nun Nur Noch Auch In Im "
	 "Am An Auf Aus Bei Beim Mit Nach Von Vom Vor Zu Zum Zur Für Über Unter Um Als Wenn Weil Dass Ob So Wie Was Wer Wo Warum Nicht Kein Keine Mein Meine Sein "
	 "Seine Ihre Unser Unsere Dieser Diese Dieses Alle Alles Viele Danach Dabei Damit Trotzdem Später Schon Seit Bis Durch Gegen Ohne Während Heute Gestern "
	 "Ja Nein Jeder Jede Jedes Manche Einige Beide Deshalb Dennoch ", true},
	{"fr",
	 " m mm mr mme mmes mlle mlles me mgr dr pr st ste cf env p.ex c.-à-d ",
	 " no n° nos art ch chap fig p pp vol t tab éd num ",
	 " etc av bd boul apr j.-c ltd cie janv févr avr juil sept oct nov déc tél ",
	 " Le La Les Un Une Des Il Elle Ils Elles On Nous Vous Je Tu Ce Cette Ces Cet Mais Et Ou Or Donc Car Puis Alors Ensuite Dans En Au Aux À De Du Sur Sous "
	 "Pour Par Avec Sans Quand Si Comme Son Sa Ses Leur Leurs Mon Ma Mes Notre Votre Qui Que Quoi Où Pourquoi Comment Ici Là Maintenant Plus Tout Tous Toute "
	 "Toutes Après Avant Depuis Pendant Non Oui Aujourd Hier ", false},
	{"es",
	 " sr sra sres srta d dª dr dra prof profa gral gob lic ing arq fr sto sta ud uds vd vds excmo excma ilmo p.ej i.e aprox máx mín ee ",
	 " núm nº n art arts cap caps fig figs pág págs p pp vol vols t tel ",
	 " etc av avda c a.c d.c ee.uu cía s.a hnos ene feb mar abr may jun jul ago sept oct nov dic ",
	 " El La Los Las Un Una Unos Unas Él Ella Ellos Ellas Yo Tú Nosotros Ustedes Se Me Te Le Lo Les Nos Su Sus Mi Mis Este Esta Esto Estos Ese Esa Eso Aquel "
	 "Aquella Pero Y E O Ni Porque Pues Entonces Luego Después Antes En A Al De Del Con Sin Por Para Sobre Desde Hasta Cuando Si Como Qué Quién Dónde Cómo No Sí "
	 "Ya Aquí Allí Ahora Hoy Ayer Más Muy Todo Todos Toda Todas ", false},
	{"it",
	 " sig sigg sig.ra sig.na dott dott.ssa prof prof.ssa avv ing arch geom rag on sen gen col cap ten s ss mons cfr es p.es ca circa ",
	 " n nn nr art artt cap fig figg pag pagg p pp vol voll tab tel ",
	 " ecc etc v.le p.zza c.so a.c d.c s.p.a s.r.l gen feb mar apr mag giu lug ago set ott nov dic ",
	 " Il Lo La I Gli Le Un Uno Una Lui Lei Loro Noi Voi Io Tu Egli Ella Essi Si Ci Mi Ti Questo Questa Questi Queste Quello Quella Ma E Ed O Però Poi Allora "
	 "Quindi Perché Dunque In Nel Nella A Al Alla Di Del Della Da Dal Dalla Con Senza Per Su Sul Sulla Tra Fra Quando Se Come Che Chi Dove Non No Sì Qui Là Ora "
	 "Oggi Ieri Suo Sua Suoi Mio Mia Tutto Tutti Tutta Dopo Prima ", false},
	{"pt",
	 " sr sra srs sras srta dr dra drs prof profa eng exmo exma d sto sta gen cel cap ten aprox máx mín p.ex i.e ",
	 " n nº núm séc art arts cap fig pág págs p pp vol t tel ",
	 " etc av r a.c d.c ltda cia s.a jan fev mar abr mai jun jul ago set out nov dez ",
	 " O A Os As Um Uma Uns Umas Ele Ela Eles Elas Eu Tu Nós Você Vocês Se Seu Sua Seus Meu Minha Este Esta Isto Esse Essa Isso Aquele Aquela Mas E Ou Porque "
	 "Pois Então Depois Antes Em No Na Nos Nas Ao À De Do Da Com Sem Por Para Sobre Desde Até Quando Como Que Quem Onde Não Sim Já Aqui Ali Agora Hoje Ontem "
	 "Mais Muito Todo Todos Toda Todas ", false},
	{"nl",
	 " dhr mevr mw mej dr drs prof ir ing mr ds st bijv bv d.w.z o.a i.v.m m.b.t t.o.v n.a.v ca evt resp incl excl zgn vgl ",
	 " nr nrs art afb blz p pp dl hfst tab tel vol fig ",
	 " enz etc e.d e.a jr sr co jan feb mrt apr jun jul aug sep sept okt nov dec v.chr n.chr ",
	 " De Het Een Hij Zij Ze Wij We Ik Jij Je Jullie U Er Daar Daarna Daarom Dan Dit Dat Deze Die Maar En Of Want Dus Toen Nu Hier In Op Aan Bij Met Na Naar Van Voor Door Over "
	 "Onder Om Als Toch Ook Niet Geen Mijn Zijn Haar Hun Ons Onze Wat Wie Waar Waarom Hoe Ja Nee Alle Veel Later Soms Morgen Vandaag Gisteren ", false},
	{"pl",
	 " dr prof mgr inż hab płk gen por kpt ks św bł p pp np tzw tzn m.in ok por wg ul al pl im śp red dyr ",
	 " nr art ust pkt poz rys str s t tab tel rozdz tom zob ",
	 " itd itp etc r w godz mln mld tys zł gr n.e p.n.e wyd j.w ",
	 " On Ona Ono Oni One Ja Ty My Wy To Ten Ta Te Ci Tam Tu Teraz Potem Wtedy Ale I A Albo Lub Więc Bo W We Na Z Ze Do Od Po Przed Za Pod Nad Dla Przez Przy O "
	 "Jak Gdy Kiedy Jeśli Czy Co Kto Gdzie Dlaczego Nie Tak Już Jego Jej Ich Mój Moja Nasz Wszystko Wszyscy Dziś Dzisiaj Wczoraj Później ", false},
};
/* clang-format on */

/* NULL: no table for this language, or it is unknown. */
static const struct rules *rules_of(const char *language)
{
	for (size_t i = 0; language && i < ARRAY_LEN(all_rules); i++)
		if (!strncmp(language, all_rules[i].language, 2) &&
		    !isalpha((unsigned char)language[2]))
			return &all_rules[i];
	return NULL;
}

static bool is_listed(const char *list, const char *word, size_t len)
{
	char wanted[24];

	if (!len || len > sizeof(wanted) - 3)
		return false;
	snprintf(wanted, sizeof(wanted), " %.*s ", (int)len, word);
	return strstr(list, wanted) != NULL;
}

/* ---- the word before a full stop, and the one behind it ---- */

/* The word before a stop, in small letters. len 0: too long for an abbreviation. */
struct short_word {
	char text[20];
	size_t len;
	bool letters, digits, roman, inner_stop, single;
	bool after_single; /* behind another "x.", as in "z. B." */
};

static bool begins_word(const char *text, const char *at)
{
	return at == text || at[-1] == ' ' || at[-1] == '-' ||
	       (at > text && is_opening(char_at(step_back(text, at))));
}

/* Appends the small letter of a character of `len` bytes, which has as many. */
static void fold_into(struct short_word *w, uint32_t c, size_t len)
{
	CLEANUP(str_free) struct str small = STR_INIT;

	str_add_utf8(&small, heading_fold(c));
	if (small.len != len)
		return; /* no letter of an abbreviation */
	memcpy(w->text + w->len, small.s, len);
	w->len += len;
}

/* Reads the word whose stop is at *stop. */
static struct short_word word_before(const char *text, const char *stop)
{
	struct short_word w = {.digits = true, .roman = true};
	const char *from = stop;

	while (from > text && !begins_word(text, from))
		from = step_back(text, from);
	if (from == stop || (size_t)(stop - from) >= sizeof(w.text))
		return (struct short_word){0};
	for (const char *p = from; p < stop; p++) {
		unsigned char c = (unsigned char)*p;
		w.digits &= isdigit(c) != 0;
		w.roman &= c && strchr("IVXLCDM", c) != NULL;
		w.inner_stop |= c == '.';
		w.letters |= isalpha(c) || c >= 0x80;
	}
	for (const char *p = from; p < stop;) {
		const char *at = p;
		uint32_t c = utf8_next(&p);
		fold_into(&w, c, (size_t)(p - at));
	}
	w.single = w.letters && from == step_back(text, stop);
	w.after_single = from - text >= 3 && from[-1] == ' ' && from[-2] == '.' &&
			 isalpha((unsigned char)from[-3]) && (from - text == 3 || from[-4] == ' ');
	return w;
}

/* The next word, without opening quotes. */
static const char *word_behind(const char *at, size_t *len)
{
	while (*at == ' ' || (*at && is_opening(char_at(at))))
		utf8_next(&at);
	const char *end = at;
	while (*end && *end != ' ' && *end != '\'' && char_at(end) != 0x2019 &&
	       !is_stop(char_at(end)) && !is_comma(char_at(end)))
		utf8_next(&end);
	*len = (size_t)(end - at);
	return at;
}

/* Returns whether a Roman number is there, such as "III". A single I is a word. */
static bool is_roman(const char *word, size_t len)
{
	return len && strspn(word, "IVXLC") >= len && !(len == 1 && *word == 'I');
}

/* Returns whether a street's name ends in its abbreviation, as "Hauptstr." does. */
static bool is_street(const struct short_word *w)
{
	return w->len > 3 && !memcmp(w->text + w->len - 3, "str", 3);
}

/* Whether the full stop belongs to the word before it, by these rules. */
static bool belongs_to_word(const struct rules *r, const struct short_word *w, const char *next,
			    size_t len)
{
	bool number = isdigit((unsigned char)*next) || is_roman(next, len),
	     initial = len == 1 && next[1] == '.', starts = is_listed(r->begins, next, len);

	if (is_listed(r->never, w->text, w->len) || (w->single && initial))
		return true;
	if (w->digits)
		return r->ordinals && w->len <= 3 && !starts && !number;
	if (r->ordinals && is_street(w))
		return number;
	if (is_listed(r->numbers, w->text, w->len))
		return number;
	if (w->single || (w->inner_stop && w->len < 8) || is_listed(r->may, w->text, w->len))
		return w->after_single || !starts;
	return r->ordinals && w->roman && !starts;
}

/* Whether the full stop at *stop ends no sentence. behind: the place behind closing quotes. */
static bool is_abbreviation(const char *text, const char *stop, const char *behind,
			    const char *language)
{
	struct short_word w = word_before(text, stop);
	size_t len;
	const char *next = word_behind(behind, &len);
	const struct rules *r = rules_of(language);

	if (!w.len)
		return false;
	if (r)
		return belongs_to_word(r, &w, next, len);
	for (size_t i = 0; i < ARRAY_LEN(all_rules); i++) {
		struct rules any = all_rules[i];
		any.ordinals = false;
		if (belongs_to_word(&any, &w, next, len))
			return true;
	}
	return false;
}

/* ---- where a text may be cut ---- */

enum split_end split_end(const char *text, size_t len)
{
	enum split_end found = SPLIT_WORD;

	for (const char *end = text + len; text < end;) {
		uint32_t c = utf8_next(&text);
		if (!is_closing(c))
			found = is_stop(c) ? SPLIT_STOP : is_comma(c) ? SPLIT_COMMA : SPLIT_WORD;
	}
	return found;
}

/* What a stop means if this text follows it. */
static enum split_end end_before(const char *next, bool full_stop)
{
	size_t len;
	const char *word = word_behind(next, &len);

	if (!is_small(char_at(word)))
		return SPLIT_STOP;
	return full_stop ? SPLIT_WORD : SPLIT_COMMA; /* "Stop!" he said */
}

enum split_end split_end_at(const char *text, const char *at, const char *language)
{
	const char *last = at, *before;
	uint32_t c = 0;

	while (last > text && is_closing(c = char_at(before = step_back(text, last))))
		last = before;
	if (last == text)
		return SPLIT_WORD;
	before = step_back(text, last);
	c = char_at(before);
	if (!*at)
		return is_stop(c) ? SPLIT_STOP : is_comma(c) ? SPLIT_COMMA : SPLIT_WORD;
	if (*at != ' ') {
		uint32_t next = char_at(at);
		if (is_closing(next) || is_stop(next) || is_comma(next))
			return SPLIT_WORD;
		if (is_wide_stop(c)) /* in Japanese, "to" behind a quotation continues it */
			return last < at && next == 0x3068 ? SPLIT_COMMA : SPLIT_STOP;
		return is_wide_comma(c) ? SPLIT_COMMA : SPLIT_WORD;
	}
	bool full_stop = c == '.' && (before == text || before[-1] != '.'); /* no "..." */
	if (full_stop && is_abbreviation(text, before, at, language))
		return SPLIT_WORD;
	if (is_stop(c))
		return is_wide_stop(c) ? SPLIT_STOP : end_before(at, full_stop);
	return is_comma(c) || is_thai(c) ? SPLIT_COMMA : SPLIT_WORD;
}

bool split_glues(const char *text, const char *at)
{
	if (*at != ' ' || !at[1] || at[1] == ' ')
		return false;
	if (at > text && char_at(step_back(text, at)) == 0xab)
		return true;
	for (at++; *at && *at != ' ';) {
		uint32_t c = utf8_next(&at);
		bool dash = c == 0x2013 || c == 0x2014;
		if (dash || (!is_stop(c) && !is_comma(c) && c != '%' && c != 0xbb))
			return false;
	}
	return true;
}

bool split_is_stop(uint32_t c)
{
	return is_stop(c);
}

bool split_is_comma(uint32_t c)
{
	return is_comma(c);
}

bool split_is_closing(uint32_t c)
{
	return is_closing(c);
}
