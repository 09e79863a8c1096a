// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	fieldManager     = "trueup-sandbox"
	crdTimeout       = 30 * time.Second
	crdPollInterval  = 25 * time.Millisecond
	crdResourcesName = "customresourcedefinitions"
)

// InstallCRDs creates or updates CustomResourceDefinitions and waits until all their served versions are available: the
// definition is established, discovery lists its resource, and the resource can be listed. It waits at most 30 seconds,
// less if ctx ends before.
//
// A source is a *apiextensionsv1.CustomResourceDefinition, a slice of them, a string with the path of a YAML or JSON
// file or of a directory, or an fs.FS, such as an embed.FS. In directories and file systems, all .yaml, .yml and .json
// files are read, at any depth. Files may contain several documents. Other kinds are skipped, such as the kind of
// kustomization.yaml, but at least one document must be a definition. Definitions must be of apiextensions.k8s.io/v1.
// Fields that are unknown to the API server are errors.
//
// If a source has a mistake, no definition is installed, and the error lists all mistakes with file, document and name.
// Installing an unchanged definition again has no effect, and several processes may install concurrently. An update
// takes over the ownership of the fields that it sets. If another test binary, with which ForTest shares the control
// plane, has installed a definition of the same name with another content, InstallCRDs returns an error.
func (s *Sandbox) InstallCRDs(ctx context.Context, sources ...any) error {
	definitions, err := readDefinitions(sources)
	if err != nil {
		return fmt.Errorf("sandbox: reading CRDs: %w", err)
	}
	if len(definitions) == 0 {
		return nil
	}
	installer, err := newCRDInstaller(s)
	if err != nil {
		return fmt.Errorf("sandbox: installing CRDs: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, crdTimeout, fmt.Errorf("not served after %s", crdTimeout))
	defer cancel()
	replaced, err := s.claimDefinitions(ctx, definitions)
	if err != nil {
		return fmt.Errorf("sandbox: installing CRDs: %w", err)
	}
	var errs []error
	for _, d := range definitions {
		if err := installer.apply(ctx, d); err != nil {
			if replaced && apierrors.IsInvalid(err) {
				err = &conflictError{name: d.crd.Name, client: "an earlier test binary", cause: err}
			}
			errs = append(errs, fmt.Errorf("sandbox: installing CRD from %s: %w", d.origin, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := installer.await(ctx, definitions); err != nil {
		return fmt.Errorf("sandbox: waiting for CRD from %w", err)
	}
	return nil
}

type crdInstaller struct {
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	crds      dynamic.NamespaceableResourceInterface
}

func newCRDInstaller(s *Sandbox) (*crdInstaller, error) {
	config := s.RESTConfig()
	// Warnings are for the author of a CRD, not for every test that installs it.
	config.WarningHandler = rest.NoWarnings{}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	crds := dynamicClient.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(crdResourcesName))
	return &crdInstaller{dynamic: dynamicClient, discovery: discoveryClient, crds: crds}, nil
}

// apply writes the definition by server-side apply. It needs no previous read, so it cannot conflict with another
// process that installs the same definition.
func (c *crdInstaller) apply(ctx context.Context, d definition) error {
	body, err := d.object.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	options := metav1.PatchOptions{
		FieldManager:    fieldManager,
		Force:           &force,
		FieldValidation: metav1.FieldValidationStrict,
	}
	return poll(ctx, func() (bool, error) {
		got, err := c.crds.Patch(ctx, d.crd.Name, types.ApplyPatchType, body, options)
		switch {
		case apierrors.IsConflict(err),
			apierrors.IsAlreadyExists(err),
			apierrors.IsServerTimeout(err),
			apierrors.IsTooManyRequests(err):
			return false, err
		case err != nil:
			return true, err
		case got.GetDeletionTimestamp() != nil:
			// An earlier definition with the same name is terminating, and this write would be deleted with it.
			return false, errors.New("an earlier definition with the same name is still being deleted")
		}
		return true, nil
	})
}

// await waits until all definitions are served.
func (c *crdInstaller) await(ctx context.Context, definitions []definition) error {
	for _, d := range definitions {
		err := poll(ctx, func() (bool, error) {
			pending, err := c.pending(ctx, d)
			if err == nil && pending != "" {
				err = errors.New(pending)
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", d.origin, err)
		}
	}
	return nil
}

// pending describes what must happen before d is served, or returns "" if d is served.
func (c *crdInstaller) pending(ctx context.Context, d definition) (string, error) {
	object, err := c.crds.Get(ctx, d.crd.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
		return "", err
	}
	if reason := notEstablished(&crd); reason != "" {
		return reason, nil
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}
		listed, err := c.discovered(ctx, resource)
		if err != nil {
			return "", err
		}
		if !listed {
			return fmt.Sprintf("discovery does not list %s yet", resource), nil
		}
		if _, err := c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); unserved(err) {
			return fmt.Sprintf("%s cannot be listed yet: %s", resource, err), nil
		}
	}
	return "", nil
}

func notEstablished(crd *apiextensionsv1.CustomResourceDefinition) string {
	established := false
	var problems []string
	for _, condition := range crd.Status.Conditions {
		isTrue := condition.Status == apiextensionsv1.ConditionTrue
		switch condition.Type {
		case apiextensionsv1.Established:
			established = isTrue
		case apiextensionsv1.NamesAccepted:
			if !isTrue {
				problems = append(problems, condition.Message)
			}
		case apiextensionsv1.NonStructuralSchema:
			if isTrue {
				problems = append(problems, condition.Message)
			}
		}
	}
	switch {
	case established:
		return ""
	case len(problems) > 0:
		return "not established: " + strings.Join(problems, "; ")
	}
	return "not established yet"
}

// discovered reports whether both forms of discovery list the resource. Different parts of the API server maintain
// them, and clients use either.
func (c *crdInstaller) discovered(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	lists := func(list *metav1.APIResourceList) bool {
		return list != nil &&
			slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource })
	}
	_, aggregated, _, err := c.discovery.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return false, err
	}
	// A server without aggregated discovery returns nil.
	if aggregated != nil && !lists(aggregated[resource.GroupVersion()]) {
		return false, nil
	}
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return lists(list), err
}

// unserved reports whether err means that the resource is not served. It returns false for other errors, for example if
// its conversion webhook does not respond.
func unserved(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	switch status.Status().Code {
	case http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// poll calls try until it is done or ctx ends. The error wraps the cause of ctx and the error of the last try.
func poll(ctx context.Context, try func() (done bool, err error)) error {
	ticker := time.NewTicker(crdPollInterval)
	defer ticker.Stop()
	var last error
	for {
		done, err := try()
		if err != nil && last != nil && ctx.Err() != nil {
			// The error of a try that was interrupted by ctx is less useful than the previous one.
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
		if done {
			return err
		}
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}
