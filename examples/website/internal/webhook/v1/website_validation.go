// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/graph"
	"trueup.dev/reconcilers"
)

// Protection rejects the deletion of a site that has the annotation AnnotationProtected. A namespace with such a site
// cannot be deleted either.
func Protection() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Protection",
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			deleting := reconcilers.RetrieveAdmissionRequest(ctx).Operation == admissionv1.Delete
			if !deleting || site.Annotations[websitev1.AnnotationProtected] != "true" {
				return nil
			}
			return deny(ctx, apierrs.NewForbidden(
				websitev1.GroupVersion.WithResource("websites").GroupResource(), site.Name,
				fmt.Errorf("it is protected: remove the annotation %s first", websitev1.AnnotationProtected),
			))
		},
	}
}

// DomainIsFree rejects a domain that another Website of the namespace has. It checks only new and changed domains:
// stored sites must stay writable, or no client, including the controller, could change any of their other fields.
func DomainIsFree() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name:     "DomainIsFree",
		Describe: func(n *graph.Node) { n.ReadsKind(&websitev1.Website{}) },
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			chosen, err := choosesDomain(ctx, site)
			if err != nil || !chosen {
				return err
			}
			holder, err := holderOf(ctx, site)
			if err != nil || holder == "" {
				return err
			}
			return deny(ctx, apierrs.NewInvalid(
				websitev1.GroupVersion.WithKind("Website").GroupKind(), site.Name,
				field.ErrorList{field.Invalid(field.NewPath("spec", "domain"), site.Spec.Domain,
					fmt.Sprintf("the Website %q in this namespace already has this domain", holder))},
			))
		},
	}
}

// choosesDomain reports whether the request sets or changes the domain of the site.
func choosesDomain(ctx context.Context, site *websitev1.Website) (bool, error) {
	req := reconcilers.RetrieveAdmissionRequest(ctx)
	switch req.Operation {
	case admissionv1.Create:
		return true, nil
	case admissionv1.Update:
		var old websitev1.Website
		if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
			return false, err
		}
		return old.Spec.Domain != site.Spec.Domain, nil
	default:
		return false, nil
	}
}

// holderOf returns the name of another site in the namespace that has the domain of this one, or "".
//
// The cache responds immediately, but may be stale. If a site is not in the cache yet, the DNS record decides later,
// and the controller reports the conflict. If the cache finds a holder, the API server is asked before the request is
// rejected.
func holderOf(ctx context.Context, site *websitev1.Website) (string, error) {
	c := reconcilers.RetrieveConfigOrDie(ctx)
	var known websitev1.WebsiteList
	err := c.List(ctx, &known, client.InNamespace(site.Namespace), client.MatchingFields{domainField: site.Spec.Domain})
	if err != nil {
		return "", err
	}
	for _, other := range known.Items {
		if other.Name == site.Name {
			continue
		}
		var current websitev1.Website
		err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(&other), &current)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		if err == nil && current.Spec.Domain == site.Spec.Domain && current.DeletionTimestamp == nil {
			return current.Name, nil
		}
	}
	return "", nil
}

// deny responds with an API error, so that clients get the reason and the field, and halts. A returned error would also
// reject the request, but with code 500, as if the webhook had failed.
func deny(ctx context.Context, err *apierrs.StatusError) error {
	response := reconcilers.RetrieveAdmissionResponse(ctx)
	response.Allowed, response.Result = false, new(err.Status())
	return reconcilers.ErrHaltSubReconcilers
}
