/** Gives the functions of JavaScript that need a clock, random numbers or a console what the host has of them. */

import { log, nowMillis, random } from './host.js';

/** Replaces them. Without this, the time stands still and every call gets the same random numbers. */
export function replaceGlobals() {
  Math.random = () => random(6).reduce((number, byte) => (number + byte) / 256, 0);
  const Fixed = globalThis.Date;
  globalThis.Date = class Date extends Fixed {
    constructor(...given) {
      super(...(given.length === 0 ? [nowMillis()] : given));
    }

    static now() {
      return nowMillis();
    }
  };
  const told = (level) => (...values) => log(level, values.map(shown).join(' '));
  globalThis.console = { debug: told('debug'), log: told('info'), info: told('info'), warn: told('warn'), error: told('error') };
}

function shown(value) {
  if (typeof value === 'string') return value;
  return value instanceof Error ? `${value.name}: ${value.message}` : (JSON.stringify(value) ?? String(value));
}
