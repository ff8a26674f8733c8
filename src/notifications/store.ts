// What statements about deliveries have in common.

/** The source and condition of an update of deliveries `d` that wait, locked in the order of those who end them: these have the first of a chain when they wake
 * the next, and two who meet in another order would wait for each other. `which`: of the table. */
export const waitingInOrder = (which: string): string => `(
  select merchant_id, endpoint_id, position from deliveries where ${which} and state = 'scheduled' order by merchant_id, endpoint_id, position for update) locked
  where d.merchant_id = locked.merchant_id and d.endpoint_id = locked.endpoint_id and d.position = locked.position and d.state = 'scheduled'`
