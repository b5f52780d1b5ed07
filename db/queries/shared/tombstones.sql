-- name: GetTombstoneByRef :one
-- GetTombstoneByRef returns the tombstone of a public name.
SELECT * FROM tombstones WHERE status_ref = @status_ref;

-- name: ListTombstones :many
-- ListTombstones is a page of tombstones after a public name.
SELECT * FROM tombstones WHERE status_ref > @after
ORDER BY status_ref LIMIT CAST(@page AS BIGINT);

-- name: InsertTombstone :execrows
-- InsertTombstone takes a scope for good, unless it has a tombstone.
INSERT INTO tombstones (
    tenant_id, subject_id, tool_name, idempotency_key, status_ref, state,
    request_sha256, created_at, completed_at, pruned_at, row_digest, decisions, receipt_pk
) VALUES (
    @tenant_id, @subject_id, @tool_name, @idempotency_key, @status_ref, @state,
    @request_sha256, @created_at, @completed_at, @pruned_at, @row_digest, @decisions, @receipt_pk
) ON CONFLICT DO NOTHING;

-- name: ListAges :many
-- ListAges is a page of what says whether an operation may be pruned.
SELECT operation_pk, tool_name, state, created_at, completed_at FROM operations
WHERE operation_pk > @after_pk ORDER BY operation_pk LIMIT CAST(@page AS BIGINT);

-- name: NewestOperation :one
-- NewestOperation returns the largest key of an operation, or 0.
SELECT CAST(COALESCE(MAX(operation_pk), 0) AS BIGINT) AS operation_pk FROM operations;

-- name: DeleteAttempts :execrows
-- DeleteAttempts removes the attempts of an operation that is pruned.
DELETE FROM attempts WHERE operation_pk = @operation_pk;

-- name: DeleteResolutions :execrows
-- DeleteResolutions removes the decisions on an operation that is pruned.
DELETE FROM resolutions WHERE operation_pk = @operation_pk;

-- name: DeleteRejectedReceipts :execrows
-- DeleteRejectedReceipts removes the rejected answers to an operation that is pruned.
DELETE FROM rejected_receipts WHERE operation_pk = @operation_pk;

-- name: DeleteLocalReceipt :execrows
-- DeleteLocalReceipt removes the accepted receipt of an operation that is pruned.
DELETE FROM local_receipts WHERE operation_pk = @operation_pk;

-- name: DeleteDownstreamReceipt :execrows
-- DeleteDownstreamReceipt removes the observed receipt of an operation that is pruned.
DELETE FROM downstream_receipts
WHERE tenant_id = @tenant_id AND subject_id = @subject_id
    AND tool_name = @tool_name AND idempotency_key = @idempotency_key;

-- name: DeleteEvent :execrows
-- DeleteEvent removes the event of an operation that is pruned, if it is as the
-- caller has read it.
DELETE FROM outbox WHERE operation_pk = @operation_pk AND row_digest = @row_digest;

-- name: DeleteOperation :execrows
-- DeleteOperation removes an operation that has ended, if it is as the caller has
-- read it. The newest one stays: SQLite would give its key to the next.
DELETE FROM operations
WHERE operations.operation_pk = @operation_pk AND operations.state = @state AND operations.row_digest = @row_digest
    AND operations.state IN ('succeeded', 'failed')
    AND operations.operation_pk < (SELECT MAX(newest.operation_pk) FROM operations AS newest);

-- name: InsertTombstoneResolution :exec
-- InsertTombstoneResolution keeps what a person has decided about an operation
-- that is pruned.
INSERT INTO tombstone_resolutions (status_ref, seq, decision, actor, reason, decided_at, row_digest)
VALUES (@status_ref, @seq, @decision, @actor, @reason, @decided_at, @row_digest);

-- name: ListTombstoneResolutions :many
-- ListTombstoneResolutions returns what was decided about the operations that were
-- pruned, from one public name to another, in order.
SELECT * FROM tombstone_resolutions WHERE status_ref >= @from_ref AND status_ref <= @to_ref
ORDER BY status_ref, seq;

-- name: CountTombstones :one
-- CountTombstones counts the tombstones that there are, beside the number that
-- there should be.
SELECT CAST((SELECT COUNT(*) FROM tombstones) AS BIGINT) AS found, CAST(COALESCE((
    SELECT metadata_value FROM runtime_metadata WHERE metadata_key = 'tombstones'
), '') AS TEXT) AS counted;

-- name: AddTombstones :execrows
-- AddTombstones counts tombstones that are inserted in the same transaction.
UPDATE runtime_metadata SET metadata_value = CAST(CAST(metadata_value AS BIGINT) + CAST(@added AS BIGINT) AS TEXT)
WHERE metadata_key = 'tombstones';
