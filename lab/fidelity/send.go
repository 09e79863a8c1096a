// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// send sends an HTTP request. Responses other than errors must be JSON objects.
func (r *run) send(o Operation) {
	var content Object
	path, err := r.path(o)
	if err == nil {
		content, err = r.exchange(o, path)
	}
	r.answers = append(r.answers, Answer{Call: o.String(), Failure: failure(err), Object: content})
}

// path returns the path of the object of an operation, or of its collection.
func (r *run) path(o Operation) (string, error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(o.Kind.GroupKind(), o.Kind.Version)
	if err != nil {
		return "", err
	}
	path := "/apis/" + o.Kind.GroupVersion().String()
	if o.Kind.Group == "" {
		path = "/api/" + o.Kind.Version
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		path += "/namespaces/" + r.namespace(o)
	}
	path += "/" + mapping.Resource.Resource
	if o.Method != http.MethodPost && o.Method != http.MethodGet {
		path += "/" + r.name(o)
	}
	return path + o.Query, nil
}

func (r *run) exchange(o Operation, path string) (Object, error) {
	var body []byte
	if o.Method != http.MethodGet {
		content := Object{}
		if o.Method == http.MethodPost || o.Method == http.MethodPut {
			content = r.base(o)
			content["apiVersion"], content["kind"] = o.Kind.GroupVersion().String(), o.Kind.Kind
		}
		var err error
		if body, err = json.Marshal(edited(content, r.edits(o, o.Edits))); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(r.ctx, o.Method, r.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", o.Media)
	response, err := r.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		refused := &apierrors.StatusError{}
		if err := json.Unmarshal(text, &refused.ErrStatus); err != nil {
			refused.ErrStatus = metav1.Status{Code: int32(response.StatusCode), Message: string(text)}
		}
		return nil, refused
	}
	content := Object{}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	return normalizeNumbers(content).(Object), nil
}
