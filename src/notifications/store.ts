// What statements about deliveries have in common.

/** A part of a recursive `with`: the endpoints that are owed anything of a kind, found by skipping through an index, so that idle ones cost nothing. `which`: of the table. */
export const owing = (which: string): string => `owing as (
        (select merchant_id, endpoint_id from deliveries where ${which} order by merchant_id, endpoint_id limit 1)
        union all
        select next.merchant_id, next.endpoint_id from owing cross join lateral (
          select merchant_id, endpoint_id from deliveries
           where ${which} and (merchant_id, endpoint_id) > (owing.merchant_id, owing.endpoint_id)
           order by merchant_id, endpoint_id limit 1) next)`
