-- name: InsertCallBinding :execrows
-- InsertCallBinding binds a call identity, unless it is bound already.
INSERT INTO call_bindings (
    tenant_id, subject_id, provider, api_family, response_id, call_id,
    fingerprint_sha256, created_at, status_ref, row_digest
) VALUES (
    @tenant_id, @subject_id, @provider, @api_family, @response_id, @call_id,
    @fingerprint_sha256, @created_at, @status_ref, @row_digest
) ON CONFLICT DO NOTHING;

-- name: GetCallFingerprint :one
-- GetCallFingerprint returns what a call identity is bound to.
SELECT fingerprint_sha256 FROM call_bindings
WHERE tenant_id = @tenant_id AND subject_id = @subject_id AND provider = @provider
    AND api_family = @api_family AND response_id = @response_id AND call_id = @call_id;

-- name: ListCallBindings :many
-- ListCallBindings is a page of call identities after a given one, in key order.
SELECT * FROM call_bindings
WHERE (tenant_id, subject_id, provider, api_family, response_id, call_id)
    > (@tenant_id, @subject_id, @provider, @api_family, @response_id, @call_id)
ORDER BY tenant_id, subject_id, provider, api_family, response_id, call_id
LIMIT CAST(@page AS BIGINT);

-- name: HoldCallBinding :one
-- HoldCallBinding returns what a call identity is bound to, and keeps it from
-- being pruned before the end of the transaction.
UPDATE call_bindings SET fingerprint_sha256 = fingerprint_sha256
WHERE tenant_id = @tenant_id AND subject_id = @subject_id AND provider = @provider
    AND api_family = @api_family AND response_id = @response_id AND call_id = @call_id
RETURNING fingerprint_sha256;

-- name: ListCallBindingAges :many
-- ListCallBindingAges is ListCallBindings with what says whether one may be
-- pruned: 1 where it is old and its operation is not there. Of one without a name
-- nobody knows which that is.
SELECT call_bindings.*, CAST(CASE
    WHEN call_bindings.created_at <= CAST(@before AS BIGINT) AND call_bindings.status_ref <> '' AND NOT EXISTS (
        SELECT 1 FROM operations WHERE operations.status_ref = call_bindings.status_ref
    ) THEN 1 ELSE 0 END AS BIGINT) AS prunable
FROM call_bindings
WHERE (call_bindings.tenant_id, call_bindings.subject_id, call_bindings.provider,
        call_bindings.api_family, call_bindings.response_id, call_bindings.call_id)
    > (@tenant_id, @subject_id, @provider, @api_family, @response_id, @call_id)
ORDER BY call_bindings.tenant_id, call_bindings.subject_id, call_bindings.provider,
    call_bindings.api_family, call_bindings.response_id, call_bindings.call_id
LIMIT CAST(@page AS BIGINT);

-- name: DeleteCallBinding :execrows
-- DeleteCallBinding removes a call identity that belongs to no operation, if it
-- is as the caller has read it.
DELETE FROM call_bindings
WHERE call_bindings.tenant_id = @tenant_id AND call_bindings.subject_id = @subject_id
    AND call_bindings.provider = @provider AND call_bindings.api_family = @api_family
    AND call_bindings.response_id = @response_id AND call_bindings.call_id = @call_id
    AND call_bindings.row_digest = @row_digest
    AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.status_ref = call_bindings.status_ref);
