/**
 * The patterns of text fields.
 *
 * A pattern is checked by the browser (a regular expression with the flag `v`) and by the SDK of the policy's language. So a
 * pattern may have only what means the same in JavaScript, Python and Rust; `wit/README.md` lists it. The SDKs read patterns
 * alike, which `tests/tables/form-fields.json` holds.
 */

/** The most characters of a pattern whose repetitions are written out. */
const MAX_SIZE = 1000;
/** The most groups in each other. */
const MAX_DEPTH = 10;
/** Characters with a meaning outside of brackets. */
const SYNTAX = '^$\\.*+?()[]{}|/';
/** Characters that must be escaped within brackets. */
const IN_BRACKETS = '([{}/|)-';
/** Characters that are an operator of sets if they stand twice within brackets. */
const NOT_TWICE = '&!#$%*+,.:;<=>?@^`~';
/** The letters of escapes for several characters: digits, letters of words, and all others. */
const SETS = 'dDwW';

/** What in a pattern cannot be checked, and what to write instead. */
export class PatternError extends RangeError {}

/** Throws `PatternError` unless browsers and all SDKs can check the pattern alike. */
export function check(pattern) {
  try {
    new Reader(pattern).read();
  } catch (problem) {
    if (!(problem instanceof PatternError)) throw problem;
    throw new PatternError(`the pattern ${pattern} ${problem.message}`);
  }
}

/** Whether the whole text matches the pattern. Throws `PatternError` as `check` does. */
export function isMatch(pattern, text) {
  check(pattern);
  // What a pattern may have means the same with the flags `u` and `v`; older engines do not know `v`.
  return new RegExp(`^(?:${pattern})$`, 'u').test(text);
}

/** Reads a pattern from its beginning to its end. */
class Reader {
  constructor(pattern) {
    this.chars = [...pattern];
    // The position of the last character that was read; the first is 1.
    this.at = 0;
    // The sizes of the pattern and of the groups that are open.
    this.sizes = [0];
    // The size of what a repetition would repeat.
    this.last = undefined;
  }

  peek() {
    return this.chars[this.at];
  }

  next() {
    const char = this.peek();
    if (char !== undefined) this.at += 1;
    return char;
  }

  nextIf(wanted) {
    const isNext = this.peek() === wanted;
    if (isNext) this.at += 1;
    return isNext;
  }

  read() {
    for (let char = this.next(); char !== undefined; char = this.next()) {
      const at = this.at;
      if (char === '\\') {
        this.escape(SYNTAX);
        this.add(1);
      } else if (char === '[') {
        this.brackets();
        this.add(1);
      } else if (char === '(') {
        this.open();
      } else if (char === ')') {
        this.close();
      } else if ('|^$'.includes(char)) {
        this.last = undefined;
      } else if ('*+?'.includes(char)) {
        this.repeat(char, at, 1);
      } else if (char === '{') {
        const times = this.times();
        if (times === undefined) {
          throw new PatternError(`has { at position ${at}; write {n}, {n,} or {n,m} to repeat, or \\{`);
        }
        this.repeat(char, at, times);
      } else if (']}'.includes(char)) {
        throw unescaped(char, at);
      } else {
        this.add(1);
      }
    }
    if (this.sizes.length > 1) throw new PatternError('has a group that does not end');
  }

  /** Adds an item of this size to the innermost group. */
  add(size) {
    this.last = size;
    this.grow(size);
  }

  grow(size) {
    const sum = this.sizes.pop() + size;
    this.sizes.push(sum);
    if (sum > MAX_SIZE) {
      throw new PatternError(`is too large: written without repetitions it may have ${MAX_SIZE} characters`);
    }
  }

  open() {
    const at = this.at;
    if (this.nextIf('?') && !this.nextIf(':')) {
      throw new PatternError(`has (? at position ${at}, which this form cannot check; groups begin with ( or (?:`);
    }
    this.sizes.push(0);
    this.last = undefined;
    if (this.sizes.length > MAX_DEPTH + 1) throw new PatternError(`has more than ${MAX_DEPTH} groups in each other`);
  }

  close() {
    if (this.sizes.length === 1) {
      throw new PatternError(`has the character ) at position ${this.at}, where no group ends; write \\)`);
    }
    // An empty group counts, too, because it can be repeated.
    this.add(Math.max(this.sizes.pop(), 1));
  }

  /** Repeats the last item. A repetition cannot be repeated; a `?` after it changes nothing for a whole text. */
  repeat(char, at, times) {
    if (this.last === undefined) throw new PatternError(`has ${char} at position ${at}, which repeats nothing`);
    const size = this.last;
    this.last = undefined;
    this.nextIf('?');
    this.grow(size * (Math.max(times, 1) - 1));
  }

  /** The most times that `{n}` and `{n,m}` repeat, and the fewest of `{n,}`; `undefined` if it is none of these. */
  times() {
    const least = this.number();
    if (least === undefined) return undefined;
    const most = this.nextIf(',') ? this.number() : least;
    if (!this.nextIf('}') || most < least) return undefined;
    return most ?? least;
  }

  number() {
    let digits = '';
    while (/^[0-9]$/.test(this.peek() ?? '')) digits += this.next();
    return digits === '' ? undefined : Number(digits);
  }

  /** Reads what follows a backslash; `undefined` if it stands for several characters. */
  escape(escaped) {
    const at = this.at;
    const char = this.next();
    if (char === undefined) throw new PatternError('ends with \\');
    if (SETS.includes(char)) return undefined;
    if (escaped.includes(char)) return char;
    throw new PatternError(`has \\${char} at position ${at}, which this form cannot check`);
  }

  brackets() {
    const start = this.at;
    this.nextIf('^');
    if (this.peek() === ']') throw new PatternError(`has brackets without a character at position ${start}`);
    while (!this.nextIf(']')) {
      const first = this.item();
      const begin = this.at;
      if (first === undefined || !this.nextIf('-')) continue;
      const dash = this.at;
      if (this.peek() === ']') throw unescaped('-', dash);
      const last = this.item();
      if (last === undefined) throw unescaped('-', dash);
      if (last.codePointAt(0) < first.codePointAt(0)) {
        throw new PatternError(`has a range at position ${begin} that ends before it begins`);
      }
    }
  }

  /** Reads a character within brackets; `undefined` if it stands for several. */
  item() {
    const char = this.next();
    if (char === undefined) throw new PatternError('has brackets that do not end');
    if (char === '\\') return this.escape(`${SYNTAX}-`);
    if (IN_BRACKETS.includes(char)) throw unescaped(char, this.at);
    if (NOT_TWICE.includes(char) && this.peek() === char) {
      throw new PatternError(`has the character ${char} twice at position ${this.at}; write it once`);
    }
    return char;
  }
}

function unescaped(char, at) {
  return new PatternError(`has the character ${char} at position ${at}; write \\${char}`);
}
