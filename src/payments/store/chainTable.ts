// Where rows of a payment stand. Every room names its tables; `start` puts them together, and the archive goes by them.

export type ChainTable = {
  readonly table: string
  /** The column with the payment's id; payment_id when absent. */
  readonly payment?: string
  /** That column is a text of 32 hex characters. */
  readonly isText?: true
  /** Which rows, `t`, say that something of the payment is still to come, in SQL: its chain is not taken out of the database. */
  readonly holds?: string
  /** Its rows are not taken out with the payment: they end by a rule of their own, or stay. */
  readonly stays?: true
}
