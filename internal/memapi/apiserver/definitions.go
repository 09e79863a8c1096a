// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// updateDefinitions serves the CustomResourceDefinitions that exist after a write. A real server does so a moment
// later, and its clients have to wait for the condition Established.
func (s *Server) updateDefinitions() {
	changed := false
	for _, e := range s.api.Events(s.definitionsSeen) {
		kind, served := s.registry.For(e.Kind)
		changed = changed || e.Kind == definitionKind || served && kind.Custom && e.Type == watch.Deleted
	}
	s.definitionsSeen = s.api.Version()
	if !changed {
		return
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	c := s.api.Client("kube-apiserver")
	for _, obj := range s.api.List(definitionKind) {
		crd := obj.(*apiextensionsv1.CustomResourceDefinition)
		if crd.DeletionTimestamp != nil && s.emptied(c, crd) {
			continue
		}
		all = append(all, crd)
	}
	registry, err := s.registry.With(all...)
	if err == nil {
		applier := apply.New(registry)
		if err = s.api.Redefine(registry, applier); err == nil {
			s.registry = registry
			s.documents.Reset(registry)
		}
	}
	for _, crd := range all {
		_ = s.accept(c, crd.DeepCopy(), err)
	}
	s.definitionsSeen = s.api.Version()
}

// accept sets the status of a definition that is served.
func (s *Server) accept(c client.Client, crd *apiextensionsv1.CustomResourceDefinition, failed error) error {
	crd.Status.AcceptedNames = crd.Spec.Names
	accepted := []apiextensionsv1.CustomResourceDefinitionCondition{
		{
			Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts",
			Message: "no conflicts found",
		},
		{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue, Reason: "InitialNamesAccepted",
			Message: "the initial names have been accepted",
		},
	}
	if failed != nil {
		accepted = []apiextensionsv1.CustomResourceDefinitionCondition{{
			Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionTrue, Reason: "NotServed",
			Message: failed.Error(),
		}}
	}
	for _, condition := range accepted {
		i := slices.IndexFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == condition.Type
		})
		condition.LastTransitionTime = metav1.Now()
		switch {
		case i < 0:
			crd.Status.Conditions = append(crd.Status.Conditions, condition)
		case crd.Status.Conditions[i].Status != condition.Status:
			crd.Status.Conditions[i] = condition
		}
	}
	if err := c.Status().Update(context.Background(), crd); err != nil {
		return client.IgnoreNotFound(err)
	}
	if crd.DeletionTimestamp == nil && !slices.Contains(crd.Finalizers, cleanup) {
		crd.Finalizers = append(crd.Finalizers, cleanup)
		return client.IgnoreNotFound(c.Update(context.Background(), crd))
	}
	return nil
}

// cleanup is the finalizer of definitions whose objects have to be deleted first.
const cleanup = apiextensionsv1.CustomResourceCleanupFinalizer

// emptied deletes the objects of a definition that is being deleted, and reports whether the definition is removed.
func (s *Server) emptied(c client.Client, crd *apiextensionsv1.CustomResourceDefinition) bool {
	ctx := context.Background()
	left := 0
	for _, version := range crd.Spec.Versions {
		kind := crd.GroupVersionKind()
		kind.Group, kind.Version, kind.Kind = crd.Spec.Group, version.Name, crd.Spec.Names.Kind
		if _, served := s.registry.For(kind); !served {
			continue
		}
		for _, obj := range s.api.List(kind) {
			if obj.GetDeletionTimestamp() == nil {
				found := &unstructured.Unstructured{}
				found.SetGroupVersionKind(kind)
				found.SetNamespace(obj.GetNamespace())
				found.SetName(obj.GetName())
				_ = c.Delete(ctx, found)
			}
		}
		left = max(left, len(s.api.List(kind)))
	}
	if left > 0 || !slices.Contains(crd.Finalizers, cleanup) {
		return false
	}
	crd = crd.DeepCopy()
	crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool { return f == cleanup })
	return c.Update(ctx, crd) == nil && len(crd.Finalizers) == 0
}

// definitionAdmission refuses definitions that cannot be served.
type definitionAdmission struct{ server *Server }

var _ memapi.Admission = definitionAdmission{}

func (definitionAdmission) Handles(r memapi.AdmissionRequest) bool {
	return r.Kind.GroupVersionKind == definitionKind && r.Subresource == "" && r.Operation != admissionv1.Delete
}

func (definitionAdmission) Mutate(memapi.AdmissionRequest) ([]byte, error) { return nil, nil }

// Validate returns an error if the definition of a request has a schema that cannot be compiled, or names of another
// definition.
func (a definitionAdmission) Validate(r memapi.AdmissionRequest) error {
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
	for _, obj := range a.server.api.List(definitionKind) {
		other := obj.(*apiextensionsv1.CustomResourceDefinition)
		if other.Name != crd.Name && other.Spec.Group == crd.Spec.Group && other.Spec.Names.Kind == crd.Spec.Names.Kind {
			errs = append(errs, field.Duplicate(field.NewPath("spec", "names", "kind"), crd.Spec.Names.Kind))
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
