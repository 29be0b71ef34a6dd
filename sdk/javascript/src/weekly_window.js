/** Times of the week, for rules that hold at night or at weekends. */

const MINUTE = 60_000;
const DAY = 24 * 60;
/** The first day of the Unix epoch was a Thursday. */
const DAYS = ['thu', 'fri', 'sat', 'sun', 'mon', 'tue', 'wed'];

/**
 * A time of some days of the week, such as from 22:00 until 06:00 on Fridays. One that ends before it begins ends on the
 * next day.
 */
export class WeeklyWindow {
  /**
   * Reads `{days: [mon, tue], from: "22:00", until: "06:00", utc_offset: "+01:00"}`. Without `days` it is every day, and
   * without `utc_offset` the times are UTC. Summer time is not known.
   */
  static read(entry) {
    const window = new WeeklyWindow();
    const names = entry.has('days') ? entry.texts('days') : DAYS;
    for (const name of names.filter((name) => !DAYS.includes(name))) {
      entry.problem('days', `\`${name}\` is no day; write mon, tue, wed, thu, fri, sat or sun`);
    }
    window.days = names.map((name) => DAYS.indexOf(name));
    window.begins = entry.requiredParsed('from', time);
    window.ends = entry.requiredParsed('until', time);
    window.utcOffset = entry.parsed('utc_offset', offset, 0);
    return window;
  }

  /** Whether this moment, in milliseconds since the Unix epoch (`host.nowMillis`), is in it. */
  contains(nowMillis) {
    const minutes = Math.floor(nowMillis / MINUTE) + this.utcOffset;
    const day = Math.floor(minutes / DAY);
    const now = minutes - day * DAY;
    const beginsOn = (one) => this.days.includes(((one % 7) + 7) % 7);
    if (this.begins <= this.ends) return beginsOn(day) && this.begins <= now && now < this.ends;
    return (beginsOn(day) && now >= this.begins) || (beginsOn(day - 1) && now < this.ends);
  }
}

function time(text) {
  const found = /^(\d{2}):([0-5]\d)$/.exec(text);
  const minutes = found ? Number(found[1]) * 60 + Number(found[2]) : DAY + 1;
  if (minutes > DAY) throw new RangeError(`\`${text}\` is no time of a day; write one such as 22:30`);
  return minutes;
}

function offset(text) {
  if (!/^[+-]/.test(text)) throw new RangeError(`\`${text}\` is no offset; write one such as +01:00`);
  return time(text.slice(1)) * (text.startsWith('-') ? -1 : 1);
}
