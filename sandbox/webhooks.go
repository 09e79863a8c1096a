// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	webhookHost    = "127.0.0.1"
	webhookTimeout = 30 * time.Second
	// conversionPath is the path at which controller-runtime serves conversions.
	conversionPath = "/convert"
)

// WebhookOptions configures the webhooks of a test. At least one of Configurations and Conversions is required.
type WebhookOptions struct {
	// Configurations are the MutatingWebhookConfigurations and ValidatingWebhookConfigurations to register: objects of
	// these types, slices of them, paths of YAML and JSON files and of directories, and file systems, as for
	// Sandbox.InstallCRDs. Other kinds in files are skipped, so the directory config/webhook of a kubebuilder project can
	// be used. Paths of URLs and services are kept. Host, port and certificate are replaced by the ones of the test.
	// Default: none.
	Configurations []any

	// Conversions are the names of installed CustomResourceDefinitions, such as "websites.example.com", whose versions a
	// webhook of the test converts. Its path is the one in the definition, or /convert. All tests share a definition, so
	// only one test at a time may convert its objects. At the end of the test its previous conversion is restored.
	// TestOptions.Private must be set. Default: none.
	Conversions []string

	// Host is the address of this machine at which the API server reaches the webhooks. Default: 127.0.0.1; a remote
	// cluster needs another address.
	Host string

	// AllNamespaces sends the requests for objects of all namespaces to the test. Default: false; each webhook gets an
	// additional namespace selector for the namespace of the test. Requests for cluster-scoped objects are not restricted
	// by it. For both, webhooks need an objectSelector, or TestOptions.Private must be set.
	AllNamespaces bool
}

// Webhooks is the address and certificate with which a test must serve its webhooks. With a manager of
// controller-runtime, use [Webhooks.Server].
type Webhooks struct {
	// Host and Port are the address to listen on.
	Host string
	Port int

	// CertDir is a directory with the certificate and the key to serve with: tls.crt and tls.key.
	CertDir string

	// CABundle is the certificate authority that clients must trust, in PEM.
	CABundle []byte
}

// Webhooks registers webhooks until the test t ends. t must be the test that ForTest was called with, or a subtest of
// it. Webhooks creates a certificate, chooses a free port, and returns both.
//
// When it returns, the API server uses the registrations: requests fail until the test serves its webhooks, see
// [Webhooks.WaitUntilServed]. Names of configurations get the namespace of the test as a suffix. At the end of t the
// configurations are deleted. Functions that are registered with t.Cleanup later, for example to stop the server, run
// before that. If Webhooks fails, it ends t with an error that lists every mistake in o.
func (e *Env) Webhooks(t testing.TB, o WebhookOptions) *Webhooks {
	t.Helper()
	configurations, err := o.prepare()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.checkShared(e, configurations); err != nil {
		t.Fatal(orDeath(e.Sandbox, err))
	}
	w, err := newWebhooks(o.Host, t.TempDir())
	if err != nil {
		t.Fatalf("sandbox: preparing to serve webhooks: %v", err)
	}
	r, err := newWebhookRegistrar(e, w, t.Name())
	if err != nil {
		t.Fatalf("sandbox: registering webhooks: %v", err)
	}
	t.Cleanup(func() {
		if e.Err() != nil {
			return // the clean-up of ForTest reports the end of the control plane
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), webhookTimeout)
		defer cancel()
		if err := r.undo(ctx); err != nil {
			t.Error(orDeath(e.Sandbox, fmt.Errorf("sandbox: removing the test's webhooks: %w", err)))
		}
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), webhookTimeout, fmt.Errorf("not in use after %s", webhookTimeout))
	defer cancel()
	if err := r.registerAll(ctx, configurations, o.AllNamespaces); err != nil {
		t.Fatal(orDeath(e.Sandbox, err))
	}
	for _, crd := range o.Conversions {
		if err := r.convert(ctx, crd); err != nil {
			t.Fatal(orDeath(e.Sandbox, fmt.Errorf("sandbox: registering the conversion webhook of %s: %w", crd, err)))
		}
	}
	return w
}

// prepare sets defaults and returns the configurations in o, or an error that lists every mistake in o.
func (o *WebhookOptions) prepare() ([]webhookConfiguration, error) {
	if o.Host == "" {
		o.Host = webhookHost
	}
	var errs []error
	if len(o.Configurations) == 0 && len(o.Conversions) == 0 {
		errs = append(errs, errors.New("at least one of Configurations and Conversions is required"))
	}
	configurations, err := readWebhookConfigurations(o.Configurations)
	if err != nil {
		errs = append(errs, fmt.Errorf("field Configurations: %w", err))
	}
	for i, crd := range o.Conversions {
		if plural, group, ok := strings.Cut(crd, "."); !ok || plural == "" || group == "" {
			errs = append(
				errs,
				fmt.Errorf(
					"field Conversions[%d]: %q is not the name of a CustomResourceDefinition: want <plural>.<group>", i, crd,
				),
			)
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("sandbox: invalid webhook options: %w", errors.Join(errs...))
	}
	return configurations, nil
}

// Server returns a server for the options of a manager: ctrl.Options{WebhookServer: w.Server()}. It serves nothing
// until the manager starts it. Each call returns another server, and only one of them can listen.
func (w *Webhooks) Server() webhook.Server {
	return webhook.NewServer(webhook.Options{Host: w.Host, Port: w.Port, CertDir: w.CertDir})
}

// URL returns the URL of a path on the test's server.
func (w *Webhooks) URL(path string) string { return "https://" + w.address() + path }

func (w *Webhooks) address() string { return net.JoinHostPort(w.Host, strconv.Itoa(w.Port)) }

// WaitUntilServed returns when a server with the test's certificate listens. It returns an error if ctx ends before, or
// if a server with another certificate listens.
func (w *Webhooks) WaitUntilServed(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.CABundle)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	err := poll(ctx, func() (bool, error) {
		connection, err := dialer.DialContext(ctx, "tcp", w.address())
		var untrusted *tls.CertificateVerificationError
		switch {
		case errors.As(err, &untrusted):
			return true, fmt.Errorf("another server listens, or it does not use the certificate in CertDir: %w", err)
		case err != nil:
			return false, err
		}
		return true, connection.Close()
	})
	if err != nil {
		return fmt.Errorf("sandbox: waiting for a webhook server at %s: %w", w.address(), err)
	}
	return nil
}

// newWebhooks returns a free address and a certificate for it.
func newWebhooks(host, dir string) (*Webhooks, error) {
	port, err := freePort(host)
	if err != nil {
		return nil, err
	}
	certificate, key, err := certificateFor(host)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return &Webhooks{Host: host, Port: port, CertDir: dir, CABundle: certificate}, nil
}

var (
	webhookMu sync.Mutex
	// usedPorts holds the ports that tests of this process have reserved: a test that has not started its server yet must
	// not lose its port to another test.
	usedPorts = map[int]bool{}
	// certificates caches certificate and key by host. Creating them is slow, and tests need no secrets from each other.
	certificates = map[string][2][]byte{}
)

func freePort(host string) (int, error) {
	webhookMu.Lock()
	defer webhookMu.Unlock()
	for {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0")) //nolint:noctx // ends at once
		if err != nil {
			return 0, err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return 0, err
		}
		if !usedPorts[port] {
			usedPorts[port] = true
			return port, nil
		}
	}
}

func certificateFor(host string) (certificate, key []byte, err error) {
	webhookMu.Lock()
	defer webhookMu.Unlock()
	if pair, ok := certificates[host]; ok {
		return pair[0], pair[1], nil
	}
	certificate, key, err = certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	certificates[host] = [2][]byte{certificate, key}
	return certificate, key, nil
}

const (
	probeLabel   = "trueup.dev/webhook-probe"
	probeWebhook = "probe.sandbox.trueup.dev"
)

// webhookRegistrar registers and unregisters the webhooks of one test.
type webhookRegistrar struct {
	client    dynamic.Interface
	rest      rest.Interface
	webhooks  *Webhooks
	namespace string
	cluster   string
	test      string
	undos     []func(ctx context.Context) error
}

func newWebhookRegistrar(e *Env, w *Webhooks, test string) (*webhookRegistrar, error) {
	config := e.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &webhookRegistrar{
		client:    client,
		rest:      discoveryClient.RESTClient(),
		webhooks:  w,
		namespace: e.Namespace,
		cluster:   config.Host,
		test:      test,
	}, nil
}

// undo removes all registrations in reverse order.
func (r *webhookRegistrar) undo(ctx context.Context) error {
	var errs []error
	for i := len(r.undos) - 1; i >= 0; i-- {
		errs = append(errs, r.undos[i](ctx))
	}
	return errors.Join(errs...)
}

// clientConfig returns the client configuration with which the API server reaches a path of the test.
func (r *webhookRegistrar) clientConfig(path string) map[string]any {
	return map[string]any{"url": r.webhooks.URL(path), "caBundle": base64.StdEncoding.EncodeToString(r.webhooks.CABundle)}
}

// registerAll creates configurations and returns when the API server uses them. It serves their probes until then.
func (r *webhookRegistrar) registerAll(
	ctx context.Context, configurations []webhookConfiguration, allNamespaces bool,
) error {
	probes, err := serveProbes(r.webhooks)
	if err != nil {
		return fmt.Errorf("sandbox: registering webhooks: %w", err)
	}
	defer func() { _ = probes.Close() }()
	for _, c := range configurations {
		if err := r.register(ctx, c, allNamespaces, probes); err != nil {
			return fmt.Errorf("sandbox: registering webhooks from %s: %w", c.origin, err)
		}
	}
	return nil
}

// register creates a configuration and returns when the API server uses it.
func (r *webhookRegistrar) register(
	ctx context.Context, c webhookConfiguration, allNamespaces bool, probes *probeServer,
) error {
	object := c.object.DeepCopy()
	object.SetName(object.GetName() + "." + r.namespace)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[testLabel] = strings.TrimSuffix(namespacePrefix(r.test), "-")
	object.SetLabels(labels)

	probe := rand.String(suffixLength * 2)
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		w := w.(map[string]any)
		clientConfig, _, _ := unstructured.NestedMap(w, "clientConfig")
		w["clientConfig"] = r.clientConfig(pathOf(clientConfig))
		if allNamespaces {
			continue
		}
		expressions, _, err := unstructured.NestedSlice(w, "namespaceSelector", "matchExpressions")
		if err != nil {
			return err
		}
		expressions = append(expressions, r.inNamespace())
		if err := unstructured.SetNestedSlice(w, expressions, "namespaceSelector", "matchExpressions"); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedSlice(object.Object, append(webhooks, r.probe(probe)), "webhooks"); err != nil {
		return err
	}

	resource := strings.ToLower(object.GetKind()) + "s"
	configurations := r.client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource))
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if _, err := configurations.Create(ctx, object, options); err != nil {
		return err
	}
	r.undos = append(r.undos, func(ctx context.Context) error {
		err := configurations.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return r.awaitUse(ctx, probe, probes)
}

func (r *webhookRegistrar) inNamespace() map[string]any {
	return map[string]any{
		"key":      corev1.LabelMetadataName,
		"operator": string(metav1.LabelSelectorOpIn),
		"values":   []any{r.namespace},
	}
}

// probe returns a webhook that is only called for ConfigMaps with a label that awaitUse sets.
func (r *webhookRegistrar) probe(value string) map[string]any {
	return map[string]any{
		"name":         probeWebhook,
		"clientConfig": r.clientConfig("/" + value),
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
			"operations": []any{string(admissionregistrationv1.Create)},
		}},
		"namespaceSelector":       map[string]any{"matchExpressions": []any{r.inNamespace()}},
		"objectSelector":          map[string]any{"matchLabels": map[string]any{probeLabel: value}},
		"admissionReviewVersions": []any{"v1"},
		"sideEffects":             string(admissionregistrationv1.SideEffectClassNone),
		"failurePolicy":           string(admissionregistrationv1.Fail),
		"timeoutSeconds":          int64(5),
	}
}

// awaitUse waits until the API server calls the webhooks of a configuration, which it reads from a cache: a dry run
// reaches the probe in it.
func (r *webhookRegistrar) awaitUse(ctx context.Context, probe string, probes *probeServer) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "webhook-probe", "labels": map[string]any{probeLabel: probe}},
	}}
	configMaps := r.client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(r.namespace)
	return poll(ctx, func() (bool, error) {
		_, err := configMaps.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case probes.called("/" + probe):
			return true, nil
		case err == nil:
			return false, errors.New("the API server does not call the webhooks yet")
		}
		return !strings.Contains(err.Error(), "failed calling webhook"), err
	})
}

// probeServer serves the webhooks of a test until the test does, and admits everything.
type probeServer struct {
	http.Server
	paths sync.Map // those that were called
}

// serveProbes starts a server at the address of the webhooks. It uses a connection for one request only: none is left
// to be used instead of one to the server of the test.
func serveProbes(w *Webhooks) (*probeServer, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.CertDir, "tls.crt"), filepath.Join(w.CertDir, "tls.key"))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	listener, err := tls.Listen("tcp", w.address(), config)
	if err != nil {
		return nil, err
	}
	s := &probeServer{Server: http.Server{ReadHeaderTimeout: webhookTimeout}}
	s.Handler = http.HandlerFunc(s.admit)
	s.SetKeepAlivesEnabled(false)
	go func() { _ = s.Serve(listener) }()
	return s, nil
}

func (s *probeServer) admit(out http.ResponseWriter, in *http.Request) {
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(out, "not a review", http.StatusBadRequest)
		return
	}
	s.paths.Store(in.URL.Path, true)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	out.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(out).Encode(review) // the API server reports a connection that ends early
}

func (s *probeServer) called(path string) bool {
	_, ok := s.paths.Load(path)
	return ok
}

// converting maps cluster and definition to the test that converts the objects of the definition.
var converting sync.Map

// convert configures the API server to send the objects of a definition to the test for conversion. It returns when the
// API server does so.
func (r *webhookRegistrar) convert(ctx context.Context, name string) error {
	key := r.cluster + " " + name
	if other, ok := converting.LoadOrStore(key, r.test); ok {
		return fmt.Errorf(
			"test %s already converts its objects, and a definition has only one conversion webhook: "+
				"do not run these tests in parallel, "+
				"or call Webhooks once for both",
			other,
		)
	}
	r.undos = append(r.undos, func(context.Context) error {
		converting.Delete(key)
		return nil
	})

	object, crd, err := r.definition(ctx, name)
	if err != nil {
		return err
	}
	version := slices.IndexFunc(
		crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served && !v.Storage },
	)
	if version < 0 {
		return errors.New("only the storage version is served, so no object is ever converted")
	}
	before, _, err := unstructured.NestedFieldCopy(object, "spec", "conversion")
	if err != nil {
		return err
	}
	conversion := r.conversion(crd.Spec.Conversion)
	columns := crd.Spec.Versions[version].AdditionalPrinterColumns
	probe := apiextensionsv1.CustomResourceColumnDefinition{
		Name:     "probe " + rand.String(suffixLength*2),
		Type:     "string",
		JSONPath: ".kind",
	}
	columnsPath := fmt.Sprintf("/spec/versions/%d/additionalPrinterColumns", version)

	// The API server replaces its state of a definition at once: when it prints the column, it also uses the webhook.
	err = r.patchDefinition(ctx, name, patchOperation{"add", "/spec/conversion", conversion},
		patchOperation{"add", columnsPath, append(slices.Clone(columns), probe)})
	if err != nil {
		return err
	}
	r.undos = append(r.undos, func(ctx context.Context) error {
		err := r.patchDefinition(ctx, name, patchOperation{"add", "/spec/conversion", before})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err := r.awaitColumn(ctx, crd, crd.Spec.Versions[version].Name, probe.Name); err != nil {
		return err
	}
	if len(columns) == 0 {
		return r.patchDefinition(ctx, name, patchOperation{"remove", columnsPath, nil})
	}
	return r.patchDefinition(ctx, name, patchOperation{"replace", columnsPath, columns})
}

// definition returns a definition as stored, and decoded into the Go type of this version.
func (r *webhookRegistrar) definition(
	ctx context.Context, name string,
) (map[string]any, *apiextensionsv1.CustomResourceDefinition, error) {
	object, err := r.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(crdResourcesName)).Get(
		ctx, name, metav1.GetOptions{},
	)
	if err != nil {
		return nil, nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return nil, nil, err
	}
	return object.Object, crd, nil
}

// conversion returns a conversion that calls the test, with the path and the review versions of own.
func (r *webhookRegistrar) conversion(own *apiextensionsv1.CustomResourceConversion) map[string]any {
	at, versions := conversionPath, []string{"v1"}
	if own != nil && own.Webhook != nil {
		if own.Webhook.ClientConfig != nil {
			clientConfig, err := runtime.DefaultUnstructuredConverter.ToUnstructured(own.Webhook.ClientConfig)
			if named := pathOf(clientConfig); err == nil && named != "" {
				at = named
			}
		}
		versions = own.Webhook.ConversionReviewVersions
	}
	return map[string]any{
		"strategy": apiextensionsv1.WebhookConverter,
		"webhook":  map[string]any{"clientConfig": r.clientConfig(at), "conversionReviewVersions": versions},
	}
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (r *webhookRegistrar) patchDefinition(ctx context.Context, name string, operations ...patchOperation) error {
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	crds := r.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource(crdResourcesName))
	_, err = crds.Patch(
		ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager + "-webhooks"},
	)
	return err
}

// awaitColumn waits until the API server prints a column for the objects of a version.
func (r *webhookRegistrar) awaitColumn(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version, column string,
) error {
	resource := path.Join("/apis", crd.Spec.Group, version, crd.Spec.Names.Plural)
	return poll(ctx, func() (bool, error) {
		table, err := r.rest.Get().AbsPath(resource).Param("limit", "1").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
		if err != nil && !unserved(err) {
			// An existing object is converted, and the webhook is not served yet.
			return bytes.Contains([]byte(err.Error()), []byte(r.webhooks.address())), err
		}
		if !bytes.Contains(table, []byte(column)) {
			return false, errors.New("the API server does not call the webhook yet")
		}
		return true, nil
	})
}
