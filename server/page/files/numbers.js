// Numbers of overviews over time: counters become rates, histograms become percentiles.

const WINDOW_MS = 60000;

// The series of one overview, by name.
export class Sample {
  constructor(overview) {
    this.timeMs = overview.time_ms;
    this.metrics = overview.metrics;
  }
  series(name, labels = {}) {
    const wanted = Object.entries(labels);
    return (this.metrics[name] ?? []).filter((one) => wanted.every(([k, v]) => one.labels[k] === v));
  }
  sum(name, labels) {
    return this.series(name, labels).reduce((sum, one) => sum + one.value, 0);
  }
  // All series of a histogram as one; null where there is none.
  histogram(name, labels) {
    let all = null;
    for (const one of this.series(name, labels)) {
      if (all === null) all = { bounds: one.bounds, counts: [...one.counts], count: one.count, sum: one.sum };
      else {
        all.count += one.count;
        all.sum += one.sum;
        one.counts.forEach((count, i) => { all.counts[i] += count; });
      }
    }
    return all;
  }
}

function minus(now, before) {
  if (before === null) return now;
  return {
    bounds: now.bounds, count: now.count - before.count, sum: now.sum - before.sum,
    counts: now.counts.map((count, i) => count - (before.counts[i] ?? 0)),
  };
}

// The value below which `quantile` of the samples lie, in the bucket linearly; null without samples.
export function percentile(histogram, quantile) {
  if (histogram === null || histogram.count <= 0) return null;
  const rank = quantile * histogram.count;
  for (let i = 0; i < histogram.bounds.length; i++) {
    if (histogram.counts[i] < rank) continue;
    const low = i > 0 ? histogram.bounds[i - 1] : 0, under = i > 0 ? histogram.counts[i - 1] : 0;
    const inside = histogram.counts[i] - under;
    return inside > 0 ? low + (histogram.bounds[i] - low) * ((rank - under) / inside) : histogram.bounds[i];
  }
  return histogram.bounds[histogram.bounds.length - 1];
}

// The samples of the last minute.
export class History {
  samples = [];

  add(sample) {
    const last = this.samples[this.samples.length - 1];
    // A server that was started again counts from nothing.
    if (last !== undefined && sample.sum("reprise_requests_total") < last.sum("reprise_requests_total")) this.samples = [];
    this.samples.push(sample);
    while (this.samples.length > 2 && sample.timeMs - this.samples[1].timeMs >= WINDOW_MS) this.samples.shift();
  }
  get now() { return this.samples[this.samples.length - 1]; }
  get past() { return this.samples[0]; }

  // A second, over the window.
  rate(name, labels) {
    const ms = this.now.timeMs - this.past.timeMs;
    return ms > 0 ? Math.max(0, (1000 * (this.now.sum(name, labels) - this.past.sum(name, labels))) / ms) : 0;
  }
  // A second, between the last two samples: for lines over time.
  lastRate(name, labels) {
    const before = this.samples[this.samples.length - 2];
    if (before === undefined || this.now.timeMs <= before.timeMs) return 0;
    return Math.max(0, (1000 * (this.now.sum(name, labels) - before.sum(name, labels))) / (this.now.timeMs - before.timeMs));
  }
  // How much a counter grew in the window, or has since the start where it did not (`old`).
  grown(name, labels) {
    const all = this.now.sum(name, labels), recent = all - this.past.sum(name, labels);
    return recent > 0 ? { value: recent, old: false } : { value: all, old: true };
  }
  // The histogram of the window; since the start (`old`) where the window has no sample.
  histogram(name, labels) {
    const all = this.now.histogram(name, labels);
    if (all === null) return { histogram: null, old: true };
    const recent = minus(all, this.past.histogram(name, labels));
    return recent.count > 0 ? { histogram: recent, old: false } : { histogram: all, old: true };
  }
}
