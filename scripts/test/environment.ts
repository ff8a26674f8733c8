// What of the surroundings reaches the tests: nothing that configures a gateway. Who runs one in the same shell has set its database and its port
// there, and no test may come near them.

const settings =
  /^(MODE|PORT|HOST|PUBLIC_URL|DATA_DIR|DEMO_SHOP_PORT|EMBEDDED_USER|BACKUP_DIR|(?:REPORTING_)?DATABASE_URL|TLS_CERT|TLS_KEY|TRUSTED_PROXY|SANDBOX_HOSTS|SANDBOX_OPEN|SEAL_KEY|LOOKUP_KEY|EGRESS_ALLOW|METRICS_PORT|REQUEST_RECORDS|RETENTION_DAYS|WORKERS|LOG_LEVEL|SMTP_URL|ALERT_TO|ALERT_FROM|OTEL_[A-Z_]+|[A-Z_]+_FILE|PG[A-Z]+)$/

export const withoutSettings = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !settings.test(name)))
