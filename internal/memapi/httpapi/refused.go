// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// withoutEffect are the resources whose objects change how an API decides. The API in memory does not evaluate them, so
// it refuses them.
var withoutEffect = map[string]string{
	"mutatingwebhookconfigurations":     "calls no webhooks",
	"validatingwebhookconfigurations":   "calls no webhooks",
	"mutatingadmissionpolicies":         "evaluates no admission policies",
	"validatingadmissionpolicies":       "evaluates no admission policies",
	"mutatingadmissionpolicybindings":   "evaluates no admission policies",
	"validatingadmissionpolicybindings": "evaluates no admission policies",
}

// missingSubresources are the subresources of built-in kinds that are not implemented.
var missingSubresources = map[string]bool{
	"attach": true, "ephemeralcontainers": true, "exec": true, "log": true, "portforward": true, "proxy": true,
	"resize": true, "token": true,
}

// refusal returns the error of a request for what the API in memory does not have.
func (r *request) refusal() error {
	if does, found := withoutEffect[r.kind.Plural]; found && !r.kind.Custom && r.Method != http.MethodGet &&
		r.Method != http.MethodDelete {
		return NotImplemented(does)
	}
	if !r.kind.Custom && missingSubresources[r.subresource] {
		return NotImplemented("does not have the subresource " + r.kind.Plural + "/" + r.subresource)
	}
	if r.subresource == "scale" && r.Method == http.MethodPatch {
		switch mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); types.PatchType(mediaType) {
		case types.JSONPatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
			return NotImplemented("supports only merge patches of the subresource scale")
		}
	}
	return nil
}

// NotImplemented returns the error of a request for what the API in memory does not do.
func NotImplemented(does string) *apierrors.StatusError {
	err := apierrors.NewGenericServerResponse(http.StatusNotImplemented, "", schema.GroupResource{}, "", "", 0, false)
	err.ErrStatus.Reason = metav1.StatusReason("NotImplemented")
	err.ErrStatus.Details = nil
	err.ErrStatus.Message = "this is the API in memory, which " + does + "; use a real control plane for that"
	return err
}

// unknownFields adds warnings about unknown fields, or returns an error if the request does not allow them.
func (r *request) unknownFields(fields []string) error {
	switch r.query.Get("fieldValidation") {
	case metav1.FieldValidationStrict:
		return errors.New("unknown fields are not allowed")
	case metav1.FieldValidationIgnore:
	default:
		r.warnings = append(r.warnings, fields...)
	}
	return nil
}

// duplicateFields handles duplicate fields in a body in the same way.
func (r *request) duplicateFields(data []byte) error {
	duplicates, err := kjson.UnmarshalStrict(data, &map[string]any{}, kjson.DisallowDuplicateFields)
	if err != nil || len(duplicates) == 0 {
		return err
	}
	texts := make([]string, len(duplicates))
	for i, duplicate := range duplicates {
		texts[i] = duplicate.Error()
	}
	if err := r.unknownFields(texts); err != nil {
		kind := r.kind
		return fmt.Errorf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			kind.Kind, kind.Version, kind.Kind, strings.Join(texts, ", "))
	}
	return nil
}
