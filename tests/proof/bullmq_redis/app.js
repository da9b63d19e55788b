// BullMQ on Redis, as its pages "Workers" and "Stalled" describe: `node app.js worker`, or `node app.js producer`.
const readline = require('node:readline');
const { Queue, Worker } = require('bullmq');
const { SESv2Client, SendEmailCommand } = require('@aws-sdk/client-sesv2');

const connection = { url: process.env.REDIS_URL, maxRetriesPerRequest: null };
const WAITING = ['wait', 'active', 'delayed', 'prioritized', 'paused'];

async function send(job) {
  const ses = new SESv2Client({ endpoint: process.env.AWS_ENDPOINT_URL_SESV2 });
  await ses.send(new SendEmailCommand({
    FromEmailAddress: 'mailroom@example.com',
    Destination: { ToAddresses: [`${job.data.name}@example.com`] },
    Content: { Simple: { Subject: { Data: 'Hello' }, Body: { Text: { Data: 'Hello.' } } } },
  }));
}

async function produce() {
  const queue = new Queue('mails', { connection });
  const names = async (types) => (await queue.getJobs(types)).filter(Boolean).map((job) => job.data.name).join(' ');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.trim().split(' ');
    if (verb === 'put') for (const name of words) await queue.add('send', { name }, { removeOnComplete: true });
    console.log(JSON.stringify({ waiting: await names(WAITING), failed: await names(['failed']) }));
  }
}

// Two time-outs pass before a job comes back. Both are 30 seconds by default.
const milliseconds = (Number(process.env.TIMEOUT_SECONDS) / 2) * 1000;
const timeouts = { lockDuration: milliseconds, stalledInterval: milliseconds };
if (process.argv[2] === 'worker') new Worker('mails', send, { connection, ...timeouts });
else produce();
