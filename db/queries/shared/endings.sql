-- name: InsertEnding :exec
-- InsertEnding gives an operation that has just ended, or went in review, its place
-- among all that have.
INSERT INTO endings (status_ref, row_digest) VALUES (@status_ref, @row_digest);

-- name: CopyEnding :exec
-- CopyEnding inserts an ending with its key.
INSERT INTO endings (ending_pk, status_ref, row_digest) VALUES (@ending_pk, @status_ref, @row_digest);

-- name: ListEndings :many
-- ListEndings is a page of endings after a key.
SELECT * FROM endings WHERE ending_pk > @after_pk ORDER BY ending_pk LIMIT CAST(@page AS BIGINT);

-- name: AuditEndings :many
-- AuditEndings is a page of endings after a key, each with how many operations have its
-- name, or had it: one.
SELECT sqlc.embed(endings), CAST((
    SELECT COUNT(*) FROM operations WHERE operations.status_ref = endings.status_ref
) + (
    SELECT COUNT(*) FROM tombstones WHERE tombstones.status_ref = endings.status_ref
) AS BIGINT) AS operations
FROM endings WHERE endings.ending_pk > @after_pk ORDER BY endings.ending_pk LIMIT CAST(@page AS BIGINT);

-- name: EndedByEnding :many
-- EndedByEnding are operations as they stand, by their endings between two keys; what
-- was pruned as its tombstone says.
SELECT endings.ending_pk, endings.status_ref,
    CAST(COALESCE(operations.tool_name, tombstones.tool_name, '') AS TEXT) AS tool_name,
    CAST(COALESCE(operations.state, tombstones.state, '') AS TEXT) AS state,
    CAST(COALESCE(operations.reason, '') AS TEXT) AS reason,
    CAST(COALESCE(operations.updated_at, tombstones.completed_at, 0) AS BIGINT) AS ended_at
FROM endings LEFT JOIN operations ON operations.status_ref = endings.status_ref
LEFT JOIN tombstones ON tombstones.status_ref = endings.status_ref
WHERE endings.ending_pk > @after_pk AND endings.ending_pk <= @to_pk
ORDER BY endings.ending_pk LIMIT CAST(@page AS BIGINT);

-- name: EndedByReceipt :many
-- EndedByReceipt are operations as they stand, by the keys of their observed receipts
-- between two.
SELECT downstream_receipts.downstream_pk, operations.status_ref, operations.tool_name, operations.state,
    operations.reason, operations.updated_at
FROM downstream_receipts JOIN operations
    ON operations.tenant_id = downstream_receipts.tenant_id AND operations.subject_id = downstream_receipts.subject_id
    AND operations.tool_name = downstream_receipts.tool_name
    AND operations.idempotency_key = downstream_receipts.idempotency_key
WHERE downstream_receipts.downstream_pk > @after_pk AND downstream_receipts.downstream_pk <= @to_pk
ORDER BY downstream_receipts.downstream_pk LIMIT CAST(@page AS BIGINT);

-- name: EndedByTombstone :many
-- EndedByTombstone is EndedByReceipt of what was pruned since.
SELECT receipt_pk, status_ref, tool_name, state, completed_at FROM tombstones
WHERE receipt_pk > 0 AND receipt_pk > @after_pk AND receipt_pk <= @to_pk
ORDER BY receipt_pk LIMIT CAST(@page AS BIGINT);

-- name: NewestReceipt :one
-- NewestReceipt returns the key of the operation whose receipt was observed last, or 0.
-- It stays: SQLite would give the key of its receipt to the next.
SELECT CAST(COALESCE((
    SELECT operations.operation_pk FROM downstream_receipts JOIN operations
        ON operations.tenant_id = downstream_receipts.tenant_id AND operations.subject_id = downstream_receipts.subject_id
        AND operations.tool_name = downstream_receipts.tool_name
        AND operations.idempotency_key = downstream_receipts.idempotency_key
    WHERE downstream_receipts.downstream_pk = (SELECT MAX(newest.downstream_pk) FROM downstream_receipts AS newest)
), 0) AS BIGINT) AS operation_pk;
