import { Hono } from 'hono';

// Ponder wants one to be there; nobody calls it.
export default new Hono();
