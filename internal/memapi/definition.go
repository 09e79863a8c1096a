// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
)

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// Definition returns the stored definition of a kind, which must not be changed, or nil if the server has stored none.
func (s *Server) Definition(kind *kinds.Kind) *apiextensionsv1.CustomResourceDefinition {
	if !kind.Custom {
		return nil
	}
	crd, _ := s.Get(definitionKind, client.ObjectKey{
		Name: kind.Plural + "." + kind.Group,
	}).(*apiextensionsv1.CustomResourceDefinition)
	return crd
}

// terminateDefinition starts the deletion of a definition, and reports whether that is all that the deletion does.
// See [Options.FinalizeDefinitions].
func (s *Server) terminateDefinition(
	t *table, r *record, by string, opts *metav1.DeleteOptions,
) (done bool, err error) {
	crd, ok := r.object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || !s.finalizes {
		return false, nil
	}
	if err := t.matchDeletion(r, opts.Preconditions, "precondition failed"); err != nil || crd.DeletionTimestamp != nil {
		return false, err
	}
	crd = crd.DeepCopy()
	crd.DeletionTimestamp = new(seconds(s.now()))
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
	if len(opts.DryRun) == 0 {
		s.put(t, r.key, crd, r.request(by))
	}
	return true, nil
}
