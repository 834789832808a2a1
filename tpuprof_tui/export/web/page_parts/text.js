// Numbers and times as people read them (as formats/units.py says), and elements whose texts are never taken for markup.

const MISSING = '-';
const UNITS = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]];

// A text with the words of the profile's source: {unit}, {Events}; titleOfColumn: what it calls a column, or nothing.
function say(text) {
  return text.replace(/\{(\w+)\}/g, (_, name) => profile.words[name] ?? '');
}

// What a unit is called; those of several ranks may have other numbers than their names say.
function unitTitle(core) {
  return profile.figures.find((each) => each.core === core)?.title ?? say(`{Unit} ${core}`);
}

// ``1 core``, ``2,000 cores``, by the name of the word.
function countOf(count, word) {
  return `${grouped(count)} ${profile.words[count === 1 ? word : `${word}s`]}`;
}

// ``0 events on the device, 1,708 on the host``, as `tpuprof info` says it; ``on the host`` only if there are any.
function bySide(count) {
  const host = profile.total - profile.instructions;
  return host ? `${count} on the device, ${grouped(host)} on the host` : count;
}

function titleOfColumn(key) {
  return profile.titles[key] ?? '';
}

function grouped(value, decimals = 0) {
  return value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function unitFor(ns) {
  return UNITS.find(([, length]) => Math.abs(ns) >= length) || UNITS[3];
}

// A length of time in the largest unit of which it is at least one, in about four digits.
function durationText(ns) {
  const [unit, length] = unitFor(ns);
  const size = Math.floor(Math.abs(ns) / length);
  return `${grouped(ns / length, length === 1 ? 0 : size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0)} ${unit}`;
}

// A point in time, as exact as a step of the axis needs.
function timeText(ns, step, length) {
  const decimals = Math.max(0, Math.ceil(Math.log10(length / step) - 1e-9));
  return grouped(ns / length, Math.min(decimals, 9));
}

function percentText(share, decimals = 1) {
  const percent = share * 100;
  return `${grouped(percent, percent >= 99.95 ? 0 : decimals)}%`;
}

// Bytes in a binary unit that fits; what would be rounded to 1024 of a unit is 1 of the next.
function sizeText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let place = 0;
  for (; Math.abs(bytes) >= (place ? 1023.95 : 1024) && place + 1 < units.length; place += 1) bytes /= 1024;
  return `${grouped(bytes, place ? 1 : 0)} ${units[place]}`;
}

function hexText(value) {
  return `0x${value.toString(16).toUpperCase()}`;
}

// An element with a class, texts or elements inside, and handlers or properties.
function el(tag, className = '', children = [], properties = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const child of [].concat(children)) element.append(child);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith('data-') || key.startsWith('aria-') || key === 'role' || key === 'colspan') {
      element.setAttribute(key, value);
    } else element[key] = value;
  }
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

// A text that fits a width, cut with an ellipsis; empty where not even a few letters fit.
function fitted(context, text, width) {
  const full = context.measureText(text).width;
  if (full <= width) return text;
  const letters = Math.floor((text.length * width) / full) - 1;
  return letters < 3 ? '' : `${text.slice(0, letters)}…`;
}
