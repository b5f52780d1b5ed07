-- The audit reads ranges of keys. What stands under an operation's key comes from
-- the same range as the operations, so that rows without one show up, too.

-- name: AuditOperations :many
-- AuditOperations is a range of operations, each with what the identity of its
-- first call is bound to; '' when it is not bound.
SELECT sqlc.embed(operations), CAST(COALESCE((
    SELECT call_bindings.fingerprint_sha256 FROM call_bindings
    WHERE call_bindings.tenant_id = operations.tenant_id AND call_bindings.subject_id = operations.subject_id
        AND call_bindings.provider = operations.first_provider AND call_bindings.api_family = operations.first_api_family
        AND call_bindings.response_id = operations.first_response_id AND call_bindings.call_id = operations.first_call_id
), '') AS TEXT) AS first_fingerprint
FROM operations
WHERE operations.operation_pk >= @from_pk AND operations.operation_pk <= @to_pk
ORDER BY operations.operation_pk;

-- name: AuditEvents :many
-- AuditEvents is a range of events.
SELECT * FROM outbox
WHERE operation_pk >= @from_pk AND operation_pk <= @to_pk ORDER BY operation_pk;

-- name: AuditDownstreamReceipts :many
-- AuditDownstreamReceipts are the observed receipts of a range of operations,
-- without the scope, which is the operation's.
SELECT operations.operation_pk, downstream_receipts.downstream_pk, downstream_receipts.request_sha256,
    downstream_receipts.receipt_id, downstream_receipts.downstream_request_id, downstream_receipts.result_json,
    downstream_receipts.producer_revision, downstream_receipts.resource_revision, downstream_receipts.observed_at,
    downstream_receipts.effect_revision, downstream_receipts.committed_at, downstream_receipts.row_digest
FROM operations JOIN downstream_receipts
    ON downstream_receipts.tenant_id = operations.tenant_id AND downstream_receipts.subject_id = operations.subject_id
    AND downstream_receipts.tool_name = operations.tool_name
    AND downstream_receipts.idempotency_key = operations.idempotency_key
WHERE operations.operation_pk >= CAST(@from_pk AS BIGINT) AND operations.operation_pk <= CAST(@to_pk AS BIGINT)
ORDER BY operations.operation_pk;

-- name: AuditLocalReceipts :many
-- AuditLocalReceipts is a range of accepted receipts.
SELECT * FROM local_receipts
WHERE operation_pk >= @from_pk AND operation_pk <= @to_pk ORDER BY operation_pk;

-- name: AuditRejectedReceipts :many
-- AuditRejectedReceipts are the rejected answers of a range of operations.
SELECT * FROM rejected_receipts
WHERE operation_pk >= @from_pk AND operation_pk <= @to_pk ORDER BY operation_pk, attempt;

-- name: AuditAttempts :many
-- AuditAttempts are the attempts of a range of operations.
SELECT * FROM attempts
WHERE operation_pk >= @from_pk AND operation_pk <= @to_pk ORDER BY operation_pk, attempt;

-- name: AuditResolutions :many
-- AuditResolutions are the decisions about a range of operations.
SELECT * FROM resolutions
WHERE operation_pk >= @from_pk AND operation_pk <= @to_pk ORDER BY operation_pk, seq;

-- name: NextAuditKey :one
-- NextAuditKey returns the smallest operation's key from a given one on under
-- which there is any row at all; 0 keys mean that there is none.
SELECT COUNT(k.pk) AS found, CAST(COALESCE(MIN(k.pk), 0) AS BIGINT) AS pk FROM (
    SELECT MIN(operations.operation_pk) AS pk FROM operations WHERE operations.operation_pk >= @from_pk
    UNION ALL SELECT MIN(outbox.operation_pk) FROM outbox WHERE outbox.operation_pk >= @from_pk
    UNION ALL SELECT MIN(local_receipts.operation_pk) FROM local_receipts WHERE local_receipts.operation_pk >= @from_pk
    UNION ALL SELECT MIN(rejected_receipts.operation_pk) FROM rejected_receipts WHERE rejected_receipts.operation_pk >= @from_pk
    UNION ALL SELECT MIN(attempts.operation_pk) FROM attempts WHERE attempts.operation_pk >= @from_pk
    UNION ALL SELECT MIN(resolutions.operation_pk) FROM resolutions WHERE resolutions.operation_pk >= @from_pk
) AS k;

-- name: AuditScopeAfter :one
-- AuditScopeAfter returns the scope that is so many observed receipts after a
-- given one, in the order of the scopes.
SELECT tenant_id, subject_id, tool_name, idempotency_key FROM downstream_receipts
WHERE (tenant_id, subject_id, tool_name, idempotency_key) > (@tenant_id, @subject_id, @tool_name, @idempotency_key)
ORDER BY tenant_id, subject_id, tool_name, idempotency_key
LIMIT 1 OFFSET CAST(@page AS BIGINT);

-- name: AuditOrphanReceipts :many
-- AuditOrphanReceipts is a page of observed receipts after a scope, in the order of
-- the scopes, of which only those without an operation are returned. Both tables
-- are walked through in one direction, along an index that has all that is asked.
SELECT d.tenant_id, d.subject_id, d.tool_name, d.idempotency_key FROM (
    SELECT r.tenant_id, r.subject_id, r.tool_name, r.idempotency_key FROM downstream_receipts AS r
    WHERE (r.tenant_id, r.subject_id, r.tool_name, r.idempotency_key) > (@tenant_id, @subject_id, @tool_name, @idempotency_key)
    ORDER BY r.tenant_id, r.subject_id, r.tool_name, r.idempotency_key LIMIT CAST(@page AS BIGINT)
) AS d
WHERE NOT EXISTS (
    SELECT 1 FROM operations
    WHERE operations.tenant_id = d.tenant_id AND operations.subject_id = d.subject_id
        AND operations.tool_name = d.tool_name AND operations.idempotency_key = d.idempotency_key
)
ORDER BY d.tenant_id, d.subject_id, d.tool_name, d.idempotency_key;

-- name: AuditFewRows :one
-- AuditFewRows counts what an audit walks through, each table up to a limit.
SELECT CAST((SELECT COUNT(*) FROM (SELECT 1 FROM operations LIMIT CAST(@most AS BIGINT)) AS o)
    + (SELECT COUNT(*) FROM (SELECT 1 FROM call_bindings LIMIT CAST(@most AS BIGINT)) AS c)
    + (SELECT COUNT(*) FROM (SELECT 1 FROM outbox LIMIT CAST(@most AS BIGINT)) AS e)
    + (SELECT COUNT(*) FROM (SELECT 1 FROM downstream_receipts LIMIT CAST(@most AS BIGINT)) AS d)
    + (SELECT COUNT(*) FROM (SELECT 1 FROM local_receipts LIMIT CAST(@most AS BIGINT)) AS l)
    + (SELECT COUNT(*) FROM (SELECT 1 FROM attempts LIMIT CAST(@most AS BIGINT)) AS a)
    + (SELECT COUNT(*) FROM (SELECT 1 FROM tombstones LIMIT CAST(@most AS BIGINT)) AS t) AS BIGINT) AS few;

-- name: AuditTombstones :many
-- AuditTombstones is a page of tombstones after a public name, each with whether
-- its scope has an operation again.
SELECT sqlc.embed(tombstones), CAST((
    SELECT COUNT(*) FROM operations
    WHERE operations.tenant_id = tombstones.tenant_id AND operations.subject_id = tombstones.subject_id
        AND operations.tool_name = tombstones.tool_name AND operations.idempotency_key = tombstones.idempotency_key
) AS BIGINT) AS operations
FROM tombstones WHERE tombstones.status_ref > @after
ORDER BY tombstones.status_ref LIMIT CAST(@page AS BIGINT);
