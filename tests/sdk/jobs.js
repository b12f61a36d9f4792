// Jobs: started, looked at, scheduled.
'use strict';

const assert = require('node:assert/strict');
const { Parse, fails, main } = require('./runner');

const PATIENCE = 60_000; // milliseconds
const PAUSE = 100;
const since = new Date('2030-01-01T00:00:00Z');

async function ended(id) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const status = await Parse.Cloud.getJobStatus(id);
    if (['succeeded', 'failed'].includes(status.get('status'))) return status;
    assert.ok(Date.now() < end, `still ${status.get('status')}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

const checks = {
  async 'a job runs, and tells how it ended'() {
    const id = await Parse.Cloud.startJob('cloudReport', { since, title: 'sales' });
    assert.match(id, /^\w{10}$/);
    const status = await ended(id);
    assert.equal(status.get('status'), 'succeeded');
    assert.equal(status.get('jobName'), 'cloudReport');
    assert.equal(status.get('source'), 'api');
    assert.equal(status.get('params').title, 'sales');
    assert.ok(status.get('finishedAt') >= status.createdAt);
    const [, noteId] = status.get('message').match(/^written as (\w+)$/);
    const note = await new Parse.Query('CloudNote').get(noteId, { useMasterKey: true });
    assert.equal(note.get('text'), 'sales since 2030');
  },

  async 'what is wrong is refused before it runs'() {
    await fails(Parse.Cloud.startJob('nobody', {}), Parse.Error.SCRIPT_FAILED);
    await fails(Parse.Cloud.startJob('cloudReport', {}), Parse.Error.SCRIPT_FAILED);
  },

  async 'schedules are made as Parse Dashboard makes them'() {
    const options = { useMasterKey: true };
    const send = (method, path, body) =>
      Parse.CoreManager.getRESTController().request(method, `cloud_code/jobs${path}`, body, options);
    const job_schedule = {
      params: JSON.stringify({ since: { __type: 'Date', iso: since.toISOString() } }),
      daysOfWeek: [1, 1, 1, 1, 1, 1, 1],
      description: 'Nightly',
      jobName: 'cloudReport',
      timeOfDay: '03:30:00.000Z',
      repeatMinutes: 1440,
    };
    const { objectId } = await send('POST', '', { job_schedule });
    const data = await Parse.Cloud.getJobsData();
    assert.ok(data.in_use.includes('cloudReport'));
    assert.ok(data.jobs.includes('cloudReport'));
    const shown = (await send('GET', '', {})).find((one) => one.objectId === objectId);
    assert.equal(shown.timeOfDay, '03:30:00.000Z');
    assert.equal(shown.repeatMinutes, 1440);
    await send('PUT', `/${objectId}`, { job_schedule: { ...job_schedule, repeatMinutes: 60 } });
    await send('DELETE', `/${objectId}`, {});
    const left = await send('GET', '', {});
    assert.ok(!left.some((one) => one.objectId === objectId));
  },
};

main(checks, async () => {});
