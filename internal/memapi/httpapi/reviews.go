// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// review is a kind whose objects are only requests.
type review struct {
	kind       schema.GroupVersionKind
	namespaced bool
	status     map[string]any
}

var (
	authorization  = schema.GroupVersion{Group: "authorization.k8s.io", Version: "v1"}
	authentication = schema.GroupVersion{Group: "authentication.k8s.io", Version: "v1"}

	allowed = map[string]any{"allowed": true, "reason": "the API in memory allows everything"}
	admin   = map[string]any{"username": "trueup-memory", "groups": []any{"system:masters", "system:authenticated"}}
)

// reviews are the kinds of reviews by resource. All clients may do everything.
var reviews = map[string]review{
	"selfsubjectaccessreviews":  {kind: authorization.WithKind("SelfSubjectAccessReview"), status: allowed},
	"subjectaccessreviews":      {kind: authorization.WithKind("SubjectAccessReview"), status: allowed},
	"localsubjectaccessreviews": {authorization.WithKind("LocalSubjectAccessReview"), true, allowed},
	"selfsubjectrulesreviews": {kind: authorization.WithKind("SelfSubjectRulesReview"), status: map[string]any{
		"resourceRules": []any{map[string]any{
			"verbs": []any{"*"}, "apiGroups": []any{"*"}, "resources": []any{"*"},
		}},
		"nonResourceRules": []any{map[string]any{"verbs": []any{"*"}, "nonResourceURLs": []any{"*"}}}, "incomplete": false,
	}},
	"selfsubjectreviews": {
		kind: authentication.WithKind("SelfSubjectReview"), status: map[string]any{"userInfo": admin},
	},
}

// reviewResources returns the resources of the reviews in a version.
func reviewResources(group schema.GroupVersion) (found []metav1.APIResource) {
	for _, name := range []string{
		"localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews",
		"selfsubjectreviews",
	} {
		if r := reviews[name]; r.kind.GroupVersion() == group {
			found = append(found, metav1.APIResource{
				Name: name, Namespaced: r.namespaced, Kind: r.kind.Kind, Verbs: metav1.Verbs{"create"},
			})
		}
	}
	return found
}

// review answers a review, or returns nil if the path is not the path of a review.
func (r *request) review(path []string) (any, error) {
	if len(path) < 4 || path[0] != "apis" {
		return nil, nil
	}
	found, ok := reviews[path[len(path)-1]]
	if !ok || found.kind.Group != path[1] || found.kind.Version != path[2] || len(path) != 4 && !found.namespaced {
		return nil, nil
	}
	if r.Method != http.MethodPost {
		resource := schema.GroupResource{Group: path[1], Resource: path[len(path)-1]}
		return nil, apierrors.NewMethodNotSupported(resource, r.Method)
	}
	content, _, err := r.body()
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = found.kind.GroupVersion().String(), found.kind.Kind
	content["status"] = found.status
	return content, nil
}
