// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// newScheme returns the Go types of the built-in kinds.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, apiextensionsv1.AddToScheme(scheme)
}

// updateDefinitions serves the CustomResourceDefinitions that exist after a write, and finalizes those that are being
// deleted. A real server does so a moment later, and its clients have to wait for the condition Established.
func (s *Server) updateDefinitions() {
	if !s.definitionsChanged() {
		return
	}
	c := s.api.Client("kube-apiserver")
	for _, crd := range s.definitions() {
		if crd.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(crd, cleanup) {
			s.report("finalize the definition "+crd.Name, s.finalize(c, crd.DeepCopy()))
		}
	}
	all := s.definitions()
	names := acceptNames(all)
	served := []*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range all {
		if serves(crd, names[crd.Name]) {
			served = append(served, withNames(crd, names[crd.Name].accepted))
		}
	}
	registry, failed := s.compile(served)
	if err := s.api.Redefine(registry, apply.New(registry)); err != nil {
		s.report("serve the definitions", err)
		return
	}
	s.registry = registry
	s.documents.Reset(registry)
	for _, crd := range all {
		s.report("set the status of the definition "+crd.Name, s.accept(c, crd.DeepCopy(), names[crd.Name], failed[crd.Name]))
	}
	s.definitionsSeen = s.api.Version()
}

// definitionsChanged reports whether the definitions have changed, or the objects of one that is being deleted.
func (s *Server) definitionsChanged() bool {
	events := s.api.Events(s.definitionsSeen)
	s.definitionsSeen = s.api.Version()
	return slices.ContainsFunc(events, func(e memapi.Event) bool {
		if e.Kind == definitionKind {
			return true
		}
		kind, served := s.registry.For(e.Kind)
		return served && e.Type == watch.Deleted && s.terminating(kind)
	})
}

// terminating reports whether the definition of a kind is being deleted.
func (s *Server) terminating(kind *kinds.Kind) bool {
	crd := s.api.Definition(kind)
	return crd != nil && crd.DeletionTimestamp != nil
}

func (s *Server) definitions() []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, obj := range s.api.List(definitionKind) {
		all = append(all, obj.(*apiextensionsv1.CustomResourceDefinition))
	}
	return all
}

// compile returns a registry with definitions. Those that cannot be served do not prevent that others are; the errors
// are returned by their names.
func (s *Server) compile(all []*apiextensionsv1.CustomResourceDefinition) (*kinds.Registry, map[string]error) {
	registry, err := s.registry.With(all...)
	if err == nil {
		return registry, nil
	}
	registry = s.empty
	failed := map[string]error{}
	var served []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range all {
		with := append(slices.Clip(served), crd)
		if next, err := s.registry.With(with...); err != nil {
			failed[crd.Name] = err
		} else {
			registry, served = next, with
		}
	}
	return registry, failed
}

// accept sets the status of a definition.
func (s *Server) accept(
	c client.Client, crd *apiextensionsv1.CustomResourceDefinition, names definitionNames, failed error,
) error {
	if failed != nil {
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionTrue, Reason: "NotServed",
			Message: failed.Error(),
		})
		return c.Status().Update(s.ctx, crd)
	}
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted",
		Message: "not all names are accepted",
	}
	if serves(crd, names) {
		established.Status, established.Reason = apiextensionsv1.ConditionTrue, "InitialNamesAccepted"
		established.Message = "the initial names have been accepted"
	}
	crd.Status.AcceptedNames = names.accepted
	if apihelpers.FindCRDCondition(crd, apiextensionsv1.NonStructuralSchema) != nil {
		apihelpers.RemoveCRDCondition(crd, apiextensionsv1.NonStructuralSchema)
	}
	apihelpers.SetCRDCondition(crd, names.condition)
	apihelpers.SetCRDCondition(crd, established)
	return c.Status().Update(s.ctx, crd)
}

// cleanup is the finalizer of definitions whose objects have to be deleted first.
const cleanup = apiextensionsv1.CustomResourceCleanupFinalizer

// finalize deletes the objects of a definition that is being deleted, and removes its finalizer when none is left. A
// real server does the same, with the same conditions; but it notices after some seconds that the last object was
// deleted.
func (s *Server) finalize(c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	terminating := func(status apiextensionsv1.ConditionStatus, reason, message string) error {
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message,
		})
		return c.Status().Update(s.ctx, crd)
	}
	err := terminating(
		apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress",
	)
	if err != nil {
		return err
	}
	left, err := s.deleteInstances(c, crd)
	if err != nil {
		message := fmt.Sprintf("could not issue all deletes: %v", err)
		return errors.Join(err, terminating(apiextensionsv1.ConditionTrue, "InstanceDeletionFailed", message))
	}
	if left {
		return nil // the deletion of the last one calls finalize again
	}
	apihelpers.CRDRemoveFinalizer(crd, cleanup)
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return terminating(apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
	}
	return terminating(apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
}

// deleteInstances deletes the objects of a definition, and reports whether some are left.
func (s *Server) deleteInstances(c client.Client, crd *apiextensionsv1.CustomResourceDefinition) (left bool, _ error) {
	var errs []error
	for _, kind := range s.registry.Kinds() {
		if kind.Group != crd.Spec.Group || kind.Plural != crd.Spec.Names.Plural {
			continue // another definition may have the same kind
		}
		for _, obj := range s.api.List(kind.GroupVersionKind) {
			if obj.GetDeletionTimestamp() != nil {
				continue
			}
			instance := &unstructured.Unstructured{}
			instance.SetGroupVersionKind(kind.GroupVersionKind)
			instance.SetNamespace(obj.GetNamespace())
			instance.SetName(obj.GetName())
			errs = append(errs, c.Delete(s.ctx, instance))
		}
		left = left || len(s.api.List(kind.GroupVersionKind)) > 0
	}
	return left, errors.Join(errs...)
}

// definitionAdmission refuses definitions that cannot be served, and new objects of a definition that is being deleted.
type definitionAdmission struct{ server *Server }

var _ memapi.Admission = definitionAdmission{}

func (a definitionAdmission) Handles(r memapi.AdmissionRequest) bool {
	if r.Kind.Custom {
		return r.Operation == admissionv1.Create && a.server.terminating(r.Kind)
	}
	return r.Kind.GroupVersionKind == definitionKind && r.Subresource == "" && r.Operation != admissionv1.Delete
}

func (definitionAdmission) Mutate(memapi.AdmissionRequest) ([]byte, error) { return nil, nil }

// Validate returns an error if the definition of a request has a schema that cannot be compiled, or no longer a version
// in which objects may be stored.
func (a definitionAdmission) Validate(r memapi.AdmissionRequest) error {
	if r.Kind.Custom {
		return apierrors.NewForbidden(
			schema.GroupResource{Group: r.Kind.Group, Resource: r.Kind.Plural}, r.Key.Name,
			errors.New("create not allowed while custom resource definition is terminating"),
		)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(r.Object, crd); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if crd.DeletionTimestamp != nil {
		return nil
	}
	var errs field.ErrorList
	if name := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != name {
		errs = append(errs, field.Invalid(
			field.NewPath("metadata", "name"), crd.Name, "must be spec.names.plural+\".\"+spec.group",
		))
	}
	for i, version := range crd.Status.StoredVersions {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version
		}) {
			errs = append(errs, field.Invalid(
				field.NewPath("status", "storedVersions").Index(i), version, fmt.Sprintf("missing from spec.versions; %[1]s was "+
					"previously a storage version, and must remain in spec.versions until a storage migration ensures no data "+
					"remains persisted in %[1]s and removes %[1]s from status.storedVersions", version),
			))
		}
	}
	crd.UID = ""
	if _, err := a.server.empty.With(crd); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec"), cmp.Or(crd.Name, crd.GenerateName), err.Error()))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(definitionKind.GroupKind(), crd.Name, errs)
	}
	return nil
}

func noConversion(*apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	return nil, fmt.Errorf("this is the API in memory, which calls no webhooks: use a real control plane")
}

// newRegistry returns the built-in kinds.
func newRegistry() (*kinds.Registry, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return kinds.NewRegistry(scheme)
}
