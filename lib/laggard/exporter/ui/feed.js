// Asks the API now and then: more seldom after a failure, not at all while nobody looks.
const EVERY = 10_000;
const AT_MOST = 120_000;

export class Failure extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, code: error.code, choices: error.choices ?? [], clusters: error.clusters ?? [] });
  }
}

async function read(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failure(0, { code: "no_answer", message: "the exporter does not answer" });
  }
  let document;
  try {
    document = await answer.json();
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failure(answer.status, { code: "no_json", message: `the answer is no JSON (status ${answer.status})` });
  }
  if (!answer.ok) throw new Failure(answer.status, document.error ?? { code: "error", message: answer.statusText });
  return document;
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

  stop() {
    clearTimeout(this.timer);
    this.stopper?.abort();
  }

  async load() {
    this.stop();
    if (!this.ask || document.hidden) return;
    const stopper = (this.stopper = new AbortController());
    try {
      const found = await this.ask((path) => read(path, stopper.signal));
      if (stopper.signal.aborted) return;
      this.wait = EVERY;
      this.give(found);
    } catch (error) {
      if (stopper.signal.aborted) return;
      if (!(error instanceof Failure)) throw error;
      this.wait = Math.min(this.wait * 2, AT_MOST);
      this.fail(error, this.wait);
    }
    this.timer = setTimeout(() => this.load(), this.wait);
  }
}
