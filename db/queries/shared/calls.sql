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
