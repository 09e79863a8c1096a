// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleMessage is the message of a conflict with a newer version.
const staleMessage = "the object has been modified; please apply your changes to the latest version and try again"

func (t *table) notFound(name string) error {
	return apierrors.NewNotFound(t.resource, name)
}

func (t *table) stale(name string) error {
	return apierrors.NewConflict(t.resource, name, errors.New(staleMessage))
}

// otherUID is the conflict of an update for an object with another UID.
func (t *table) otherUID(key client.ObjectKey, wanted, found types.UID, dryRun bool) error {
	return t.failedPrecondition(key, "UID", string(wanted), string(found), dryRun)
}

// failedPrecondition is the conflict that the storage of a server returns.
func (t *table) failedPrecondition(key client.ObjectKey, field, wanted, found string, dryRun bool) error {
	return apierrors.NewConflict(t.resource, key.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, "+
		"ResourceVersion: 0, "+
		"AdditionalErrorMsg: Precondition failed: %s in precondition: %s, %s in object meta: %s", t.storageKey(key, dryRun),
		field, wanted, field, found))
}

// corrupt is the error about an object that cannot be read from the storage, because its conversion fails.
func (t *table) corrupt(key client.ObjectKey, short bool, err error) error {
	return fmt.Errorf(
		"StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %w",
		t.storageKey(key, short), err,
	)
}

// unreadable is the error of a list with objects that cannot be read. Nil if there are none.
func (t *table) unreadable(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", t.resource, errs[0])
	if len(errs) > 1 {
		message = fmt.Sprintf("%s (and %d more)", message, len(errs)-1)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: message,
		Details: &metav1.StatusDetails{Group: t.resource.Group, Kind: t.resource.Resource, Name: "list"},
	}}
}

// asStatus returns an error of a server as a client returns it.
func asStatus(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status.Status()}
}

// internal is the error that a server returns for an unexpected error.
func internal(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// notServed is the error about a subresource that a kind does not have.
func (t *table) notServed(name string) error {
	if t.kind.Custom {
		return t.notFound(name)
	}
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, false,
	)
}

// notAllowed is the error about a verb that a subresource does not support.
func (t *table) notAllowed(verb string) error {
	if t.kind.Custom {
		return apierrors.NewMethodNotSupported(t.resource, verb)
	}
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, verb, schema.GroupResource{}, "", "", 0, false)
}

// needNamespace returns the error about a patch without a namespace. For other verbs, the client itself requires one.
func (t *table) needNamespace(key client.ObjectKey) error {
	if !t.kind.Namespaced || key.Namespace != "" {
		return nil
	}
	if !t.kind.Custom {
		return t.notServed(key.Name)
	}
	return apierrors.NewGenericServerResponse(
		http.StatusNotFound, http.MethodPatch, t.resource, key.Name, "404 page not found", 0, true,
	)
}

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
