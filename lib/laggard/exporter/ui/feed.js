// Asks the API now and then: more seldom after a failure, not at all while nobody looks. In a report it asks nobody.
const EVERY = 10_000;
const AT_MOST = 120_000;
const LIMIT = 25_000; // for one answer: the exporter itself gives up after 20 s

export class Failure extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, code: error.code, choices: error.choices ?? [], clusters: error.clusters ?? [] });
  }
}

// what `laggard report` wrote into the file: since, groups (or null), and documents of groups by name; null on a server
export const report = JSON.parse(document.getElementById("documents")?.textContent ?? "null");

function kept(path) {
  const name = new URL(path, location.href).searchParams.get("group");
  const stored = name === null ? report.groups : report.of[name];
  if (!stored) throw new Failure(404, { code: "not_in_report", message: "this report does not have it" });
  return { ...stored, etag: path };
}

async function read(path, stop) {
  if (report) return kept(path);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), LIMIT);
  const none = () => new Failure(0, { code: "no_answer", message: late.signal.aborted
    ? `the exporter has not answered for ${LIMIT / 1000} s` : "the exporter does not answer" });
  try {
    const answer = await fetch(path, { signal: AbortSignal.any([stop, late.signal]) }).catch(() => { throw none(); });
    const document = await answer.json().catch(() => {
      throw late.signal.aborted ? none() : new Failure(answer.status, { code: "no_json", message: `the answer is no JSON (status ${answer.status})` });
    });
    if (!answer.ok) throw new Failure(answer.status, document.error ?? { code: "error", message: answer.statusText });
    return Object.assign(document, { etag: answer.headers.get("ETag") });
  } finally {
    clearTimeout(timer);
  }
}

export class Feed {
  constructor(give, fail) {
    Object.assign(this, { give, fail, ask: null, timer: 0, wait: EVERY, stopper: null });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.load()));
  }

  // `ask` gets a reader and gives what the view needs; another question ends the one before
  start(ask) {
    this.ask = ask;
    this.wait = EVERY;
    this.load();
  }

  // until the next start
  end() {
    this.ask = null;
    this.stop();
  }

  stop() {
    clearTimeout(this.timer);
    this.stopper?.abort();
  }

  async load() {
    this.stop();
    if (!this.ask || document.hidden) return;
    const stopper = (this.stopper = new AbortController());
    try {
      const answer = await this.ask((path) => read(path, stopper.signal));
      if (stopper.signal.aborted) return;
      this.give(answer);
      this.wait = EVERY;
    } catch (error) {
      if (stopper.signal.aborted) return;
      this.wait = Math.min(this.wait * 2, AT_MOST);
      // an answer that cannot be drawn takes the numbers away, too, and is asked for again
      if (!(error instanceof Failure)) console.error(error);
      this.fail(error instanceof Failure ? error : new Failure(0, { code: "not_drawn", message: `this page cannot draw the answer: ${error.message}` }), this.wait);
    } finally {
      if (!stopper.signal.aborted && !report) this.timer = setTimeout(() => this.load(), this.wait);
    }
  }
}
