// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Access is what a user needs for a request.
type Access struct {
	Verb, Group, Resource, Subresource string
	// Namespace is empty for all namespaces and for cluster-scoped objects, and Name for all objects.
	Namespace, Name string
}

// FullResource returns the resource with its subresource, as rules of roles name it.
func (a Access) FullResource() string {
	if a.Subresource == "" {
		return a.Resource
	}
	return a.Resource + "/" + a.Subresource
}

// Forbidden is the error of a server for a user without access. The server in memory has no authorization: its users
// return the error.
// (k8s.io/apiserver, pkg/endpoints/handlers/responsewriters/errors.go)
func Forbidden(user string, a Access) error {
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	//nolint:staticcheck // the message of a server
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, fmt.Errorf(
		"User %q cannot %s resource %q in API group %q %s",
		user, a.Verb, a.FullResource(), a.Group, where,
	))
}

// ExceededQuota is the error of a server for a creation that exceeds a quota of a number of objects, all of which are
// used. The server in memory has no quotas: its users return the error.
// (k8s.io/apiserver, pkg/admission/plugin/resourcequota/controller.go)
func ExceededQuota(quota string, resource schema.GroupResource, name string, used int) error {
	return apierrors.NewForbidden(resource, name, fmt.Errorf(
		"exceeded quota: %s, requested: count/%s=1, used: count/%[2]s=%[3]d, limited: count/%[2]s=%[3]d",
		quota, resource, used,
	))
}
