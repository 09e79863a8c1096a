// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
)

// Admission decides about writes, as the webhooks of a cluster do. Its methods may send requests to the server.
type Admission interface {
	// Handles reports whether Mutate or Validate must be called for a request. The request has no objects.
	Handles(AdmissionRequest) bool
	// Mutate returns the object to write instead of the one in the request, or nil to keep it. It is called before the
	// server validates the object, but not for deletions. The error refuses the request.
	Mutate(AdmissionRequest) ([]byte, error)
	// Validate returns an error to refuse the request. It is called after the server has validated the object.
	Validate(AdmissionRequest) error
}

// AdmissionRequest is a write that waits for a decision.
type AdmissionRequest struct {
	Operation   admissionv1.Operation
	Kind        *kinds.Kind
	Subresource string
	Key         client.ObjectKey
	DryRun      bool
	// Object is the object to write as JSON. Nil for deletions.
	Object []byte
	// OldObject is the existing object as JSON. Nil for creations.
	OldObject []byte

	server *Server
}

// In returns the request as if it were for another version of its kind: a webhook with the match policy Equivalent is
// called for all versions, with objects of its own one.
func (r AdmissionRequest) In(kind *kinds.Kind) (AdmissionRequest, error) {
	for _, object := range []*[]byte{&r.Object, &r.OldObject} {
		if *object == nil || kind == r.Kind {
			continue
		}
		content, err := decodeContent(*object)
		if err == nil {
			content, err = r.server.convert(r.Kind, kind, content)
		}
		if err == nil {
			err = kind.Converted(content)
		}
		if err == nil {
			*object, err = json.Marshal(content)
		}
		if err != nil {
			return r, internal(err)
		}
	}
	r.Kind = kind
	return r, nil
}

// admissionFor returns the request for the admission to decide about, without objects. It reports whether there is an
// admission that handles it.
func (s *Server) admissionFor(
	operation admissionv1.Operation, t *table, key client.ObjectKey, req request,
) (AdmissionRequest, bool) {
	if s.admission == nil {
		return AdmissionRequest{}, false
	}
	review := AdmissionRequest{
		Operation: operation, Kind: t.kind, Subresource: req.subresource, Key: key, DryRun: req.dryRun, server: s,
	}
	return review, s.admission.Handles(review)
}

// mutate returns the object that admission makes of one that is written in place of the old one, which may be nil.
func (s *Server) mutate(
	operation admissionv1.Operation, t *table, obj client.Object, old *record, req request,
) (client.Object, error) {
	review, handled := s.admissionFor(operation, t, client.ObjectKeyFromObject(obj), req)
	if !handled {
		return obj, nil
	}
	if err := review.fill(t, obj, old); err != nil {
		return nil, err
	}
	mutated, err := s.admission.Mutate(review)
	if mutated == nil || err != nil {
		return obj, err
	}
	content, err := decodeContent(mutated)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return t.decodeContent(content)
}

// validate asks the admission about an object that is written in place of the old one. One of them is nil.
func (s *Server) validate(
	operation admissionv1.Operation, t *table, obj client.Object, old *record, req request,
) error {
	var key client.ObjectKey
	if obj != nil {
		key = client.ObjectKeyFromObject(obj)
	} else {
		key = old.key
	}
	review, handled := s.admissionFor(operation, t, key, req)
	if !handled {
		return nil
	}
	if err := review.fill(t, obj, old); err != nil {
		return err
	}
	return s.admission.Validate(review)
}

// fill adds the objects to a request.
func (r *AdmissionRequest) fill(t *table, obj client.Object, old *record) (err error) {
	if obj != nil {
		if r.Object, err = json.Marshal(t.contentOf(obj)); err != nil {
			return internal(err)
		}
	}
	if old != nil {
		if r.OldObject, err = old.encode(t); err != nil {
			return internal(err)
		}
	}
	return nil
}
