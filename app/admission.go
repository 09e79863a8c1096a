// SPDX-License-Identifier: Apache-2.0

package app

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/resource"
)

// AdmissionAction is what a request does to an object.
type AdmissionAction string

// The actions.
const (
	AdmissionActionCreate  AdmissionAction = "CREATE"
	AdmissionActionUpdate  AdmissionAction = "UPDATE"
	AdmissionActionDelete  AdmissionAction = "DELETE"
	AdmissionActionConnect AdmissionAction = "CONNECT"
	// AdmissionActionAny stands for all of them, in a manifest.
	AdmissionActionAny AdmissionAction = "*"
)

// AdmissionRequest is a request that has not taken effect yet.
type AdmissionRequest struct {
	// Action is what the request does.
	Action AdmissionAction
	// Group, Version and Kind are those of the objects. The version is one that the app knows, whatever the user has sent.
	Group, Version, Kind string
	// UserInfo tells who asks.
	UserInfo authenticationv1.UserInfo
	// DryRun is true when nothing will be stored.
	DryRun bool
	// Object is the object as it is to be stored. It is nil when it is deleted.
	Object resource.Object
	// OldObject is the object as it is stored. It is nil when it is created.
	OldObject resource.Object
}

// GroupVersionKind returns the kind of the objects.
func (r *AdmissionRequest) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// MutatingResponse is the answer to a request whose object may be changed.
type MutatingResponse struct {
	// UpdatedObject is the object as it should be stored: that of the request, or one of the same Go type. Nil leaves the object of the request as it is now.
	UpdatedObject resource.Object
}
