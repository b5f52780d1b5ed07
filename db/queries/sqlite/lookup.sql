-- name: LookupTexts :one
-- LookupTexts is Lookup with all texts in one column, because the driver makes two
-- objects of each: without the scope, which the caller knows, and divided by zero
-- bytes. If one of them has a zero byte itself there are too many.
SELECT operations.operation_pk, operations.approval_expires_at, operations.approved_at,
    operations.created_at, operations.updated_at, operations.completed_at, operations.row_digest,
    local_receipts.operation_pk AS receipt_of, local_receipts.reconciled_at, local_receipts.row_digest AS receipt_digest,
    CAST(COALESCE((SELECT outbox.attempt_count FROM outbox WHERE outbox.operation_pk = operations.operation_pk), 0) AS BIGINT) AS attempts,
    CAST(concat_ws(char(0),
        operations.request_sha256, operations.arguments_json,
        operations.input_schema_revision, operations.output_schema_revision, operations.effect_revision,
        operations.handler_revision, operations.producer_revision, operations.policy_revision,
        operations.approval_id, operations.approver_id, operations.approval_digest,
        operations.first_operation_id, operations.first_call_id, operations.first_response_id,
        operations.first_provider, operations.first_api_family, operations.first_adapter_revision,
        operations.status_ref, operations.state, operations.reason, operations.effect_kind,
        COALESCE(local_receipts.receipt_id, ''), COALESCE(local_receipts.downstream_request_id, ''),
        COALESCE(local_receipts.request_sha256, ''), COALESCE(local_receipts.result_json, ''),
        COALESCE(local_receipts.producer_revision, ''), COALESCE(local_receipts.resource_revision, ''),
        COALESCE(local_receipts.observed_at, ''), COALESCE(local_receipts.effect_revision, ''),
        COALESCE((
            SELECT call_bindings.fingerprint_sha256 FROM call_bindings
            WHERE call_bindings.tenant_id = CAST(@tenant_id AS TEXT) AND call_bindings.subject_id = CAST(@subject_id AS TEXT)
                AND call_bindings.provider = CAST(@provider AS TEXT) AND call_bindings.api_family = CAST(@api_family AS TEXT)
                AND call_bindings.response_id = CAST(@response_id AS TEXT) AND call_bindings.call_id = CAST(@call_id AS TEXT)
        ), '')
    ) AS TEXT) AS texts
FROM operations LEFT JOIN local_receipts ON local_receipts.operation_pk = operations.operation_pk
WHERE operations.tenant_id = CAST(@tenant_id AS TEXT) AND operations.subject_id = CAST(@subject_id AS TEXT)
    AND operations.tool_name = CAST(@tool_name AS TEXT) AND operations.idempotency_key = CAST(@idempotency_key AS TEXT);
