-- name: InsertDownstreamReceipt :execrows
-- InsertDownstreamReceipt records a receipt as observed, unless the scope has one.
INSERT INTO downstream_receipts (
    tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id,
    downstream_request_id, result_json, producer_revision, resource_revision,
    observed_at, effect_revision, committed_at, row_digest
) VALUES (
    @tenant_id, @subject_id, @tool_name, @idempotency_key, @request_sha256, @receipt_id,
    @downstream_request_id, @result_json, @producer_revision, @resource_revision,
    @observed_at, @effect_revision, @committed_at, @row_digest
) ON CONFLICT (tenant_id, subject_id, tool_name, idempotency_key) DO NOTHING;

-- name: GetDownstreamReceipt :one
-- GetDownstreamReceipt returns the receipt that was observed for a scope.
SELECT * FROM downstream_receipts
WHERE tenant_id = @tenant_id AND subject_id = @subject_id
    AND tool_name = @tool_name AND idempotency_key = @idempotency_key;

-- name: InsertLocalReceipt :execrows
-- InsertLocalReceipt accepts a receipt, unless the operation has one.
INSERT INTO local_receipts (
    operation_pk, receipt_id, downstream_request_id, request_sha256, result_json,
    producer_revision, resource_revision, observed_at, effect_revision, reconciled_at, row_digest
) VALUES (
    @operation_pk, @receipt_id, @downstream_request_id, @request_sha256, @result_json,
    @producer_revision, @resource_revision, @observed_at, @effect_revision, @reconciled_at, @row_digest
) ON CONFLICT (operation_pk) DO NOTHING;

-- name: GetLocalReceipt :one
-- GetLocalReceipt returns the receipt that was accepted for an operation.
SELECT * FROM local_receipts WHERE operation_pk = @operation_pk;

-- name: InsertRejectedReceipt :execrows
-- InsertRejectedReceipt keeps an attempt's answer that was not accepted, unless it
-- is kept already.
INSERT INTO rejected_receipts (
    operation_pk, attempt, receipt_id, downstream_request_id, result_text,
    producer_revision, resource_revision, observed_at, violation, recorded_at, row_digest
) VALUES (
    @operation_pk, @attempt, @receipt_id, @downstream_request_id, @result_text,
    @producer_revision, @resource_revision, @observed_at, @violation, @recorded_at, @row_digest
) ON CONFLICT DO NOTHING;

-- name: ListRejectedReceipts :many
-- ListRejectedReceipts returns the answers to an operation that were not accepted.
SELECT * FROM rejected_receipts WHERE operation_pk = @operation_pk ORDER BY attempt;

-- name: ListDownstreamReceipts :many
-- ListDownstreamReceipts is a page of observed receipts after a key.
SELECT * FROM downstream_receipts WHERE downstream_pk > @after_pk
ORDER BY downstream_pk LIMIT CAST(@page AS BIGINT);
