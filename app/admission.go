// SPDX-License-Identifier: Apache-2.0

package app

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/resource"
)

// AdmissionAction is the operation of an admission request.
type AdmissionAction string

// Operations of admission requests.
const (
	AdmissionActionCreate  AdmissionAction = "CREATE"
	AdmissionActionUpdate  AdmissionAction = "UPDATE"
	AdmissionActionDelete  AdmissionAction = "DELETE"
	AdmissionActionConnect AdmissionAction = "CONNECT"
	// AdmissionActionAny stands for all operations in a manifest.
	AdmissionActionAny AdmissionAction = "*"
)

// AdmissionRequest is a request that has not been persisted yet.
type AdmissionRequest struct {
	// Action is the operation.
	Action AdmissionAction
	// Group, Version and Kind identify the kind of the objects. The version is one that the app supports, even if the
	// client sent another.
	Group, Version, Kind string
	// UserInfo identifies the user of the request.
	UserInfo authenticationv1.UserInfo
	// DryRun reports whether the request will not be persisted.
	DryRun bool
	// Object is the new object. It is nil for a delete.
	Object resource.Object
	// OldObject is the stored object. It is nil for a create.
	OldObject resource.Object
}

// GroupVersionKind returns the kind of the objects.
func (r *AdmissionRequest) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// MutatingResponse is the response to a request whose object may be changed.
type MutatingResponse struct {
	// UpdatedObject is the object to store: the object of the request, or another one of the same Go type. If it is nil,
	// the object of the request is stored in its current state.
	UpdatedObject resource.Object
}
