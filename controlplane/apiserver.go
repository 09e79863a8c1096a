// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	basecompatibility "k8s.io/component-base/compatibility"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

const (
	// serviceRange is reserved for benchmarks of network devices (RFC 2544), so that no host of the network has one of the
	// addresses. A loopback range would be rejected in endpoints.
	serviceRange = "198.18.0.0/16"
	issuer       = "https://kubernetes.default.svc.cluster.local"

	watchTerminationGrace = 500 * time.Millisecond
)

// serviceIP is the cluster address of the service "kubernetes": the first of serviceRange.
var serviceIP = net.IPv4(198, 18, 0, 1)

// runFunc serves until its context is done.
type runFunc func(context.Context) error

// newAPIServer prepares kube-apiserver with all its parts. It serves when the returned function runs. It takes
// ownership of listener.
func newAPIServer(
	ctx context.Context, listener net.Listener, etcdSocket string, keys *pki, space *space, kubelets utilnet.DialFunc,
	o Options,
) (runFunc, error) {
	s, err := apiServerOptions(listener, etcdSocket, keys, o)
	if err != nil {
		return nil, err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver: %w", errors.Join(errs...))
	}
	config, err := newAPIServerConfig(completed, kubelets)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	generic := config.KubeAPIs.ControlPlane.Generic
	version := reportedVersion{EffectiveVersion: generic.EffectiveVersion, git: KubernetesVersion()}
	generic.EffectiveVersion = version
	config.ApiExtensions.GenericConfig.EffectiveVersion = version
	config.Aggregator.GenericConfig.EffectiveVersion = version

	// The aggregator is the outermost server: all requests pass through its handlers.
	build := config.Aggregator.GenericConfig.BuildHandlerChainFunc
	config.Aggregator.GenericConfig.BuildHandlerChainFunc = func(h http.Handler, c *genericapiserver.Config) http.Handler {
		return build(space.protect(h), c)
	}

	completedConfig, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	chain, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	return prepared.Run, nil
}

// newAPIServerConfig does the same as app.NewConfig, but all connections to webhooks, aggregated API servers, pods,
// services and nodes are made by egress, and those to kubelets by the given function.
func newAPIServerConfig(opts options.CompletedOptions, kubelets utilnet.DialFunc) (*app.Config, error) {
	generic, informers, storage, err := controlplaneapiserver.BuildGenericConfig(
		opts.CompletedOptions,
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme},
		controlplane.DefaultAPIResourceConfigSource(),
		generatedopenapi.GetOpenAPIDefinitions,
		opts.InformerName,
	)
	if err != nil {
		return nil, err
	}
	out := &egress{services: informers.Core().V1().Services().Lister()}
	generic.EgressSelector = egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Cluster: out.dial, egressselector.ControlPlane: out.dial,
	})
	config := &app.Config{Options: opts}
	kubeAPIs, resolver, admission, err := app.CreateKubeAPIServerConfig(opts, generic, informers, storage)
	if err != nil {
		return nil, err
	}
	config.KubeAPIs = kubeAPIs
	transport := kubeAPIs.ControlPlane.ProxyTransport // uses the egress selector, too
	kubeAPIs.KubeletClientConfig.Lookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return kubelets, nil
	}
	config.ApiExtensions, err = controlplaneapiserver.CreateAPIExtensionsConfig(
		*kubeAPIs.ControlPlane.Generic, kubeAPIs.ControlPlane.VersionedInformers, admission, opts.CompletedOptions,
		opts.MasterCount, resolver, webhook.NewDefaultAuthenticationInfoResolverWrapper(transport,
			kubeAPIs.ControlPlane.Generic.EgressSelector, kubeAPIs.ControlPlane.Generic.LoopbackClientConfig,
			kubeAPIs.ControlPlane.Generic.TracerProvider))
	if err != nil {
		return nil, err
	}
	config.Aggregator, err = controlplaneapiserver.CreateAggregatorConfig(
		*kubeAPIs.ControlPlane.Generic, opts.CompletedOptions, kubeAPIs.ControlPlane.VersionedInformers, resolver,
		transport, kubeAPIs.ControlPlane.PeerProxy, admission)
	return config, err
}

func apiServerOptions(
	listener net.Listener, etcdSocket string, keys *pki, o Options,
) (*options.ServerRunOptions, error) {
	s := options.NewServerRunOptions()

	s.SecureServing.Listener = listener
	s.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	s.SecureServing.ServerCert.CertKey.CertFile = keys.servingCert
	s.SecureServing.ServerCert.CertKey.KeyFile = keys.servingKey
	s.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	// The service "kubernetes" gets no endpoints: a loopback address is not a valid one.
	s.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)
	s.ServiceClusterIPRanges = serviceRange
	s.KubeletConfig.TLSClientConfig.CAFile = keys.ca.file
	// The proxy of nodes would look up a name, even the name of a node.
	s.KubeletConfig.PreferredAddressTypes = []string{string(corev1.NodeInternalIP), string(corev1.NodeExternalIP)}
	s.AllowPrivileged = true

	s.Etcd.StorageConfig.Transport.ServerList = []string{"unix://" + etcdSocket}
	s.Etcd.StorageConfig.CompactionInterval = 0 // maintenance compacts
	s.Etcd.StorageConfig.CountMetricPollPeriod = 0
	s.Etcd.StorageConfig.DBMetricPollInterval = 0

	s.Authentication.Anonymous.Allow = false
	s.Authentication.ClientCert.ClientCA = keys.ca.file
	s.Authentication.RequestHeader.ClientCAFile = keys.frontProxyCA.file
	s.Authentication.RequestHeader.AllowedNames = []string{"front-proxy-client"}
	s.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	s.Authentication.RequestHeader.UIDHeaders = []string{"X-Remote-Uid"}
	s.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	s.Authentication.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	s.ProxyClientCertFile = keys.proxyCert
	s.ProxyClientKeyFile = keys.proxyKey
	s.Authentication.ServiceAccounts.Issuers = []string{issuer}
	s.Authentication.ServiceAccounts.KeyFiles = []string{keys.serviceAccountKey}
	s.ServiceAccountSigningKeyFile = keys.serviceAccountKey
	s.Authorization.Modes = []string{"RBAC"}

	// There is a single user, who must not be throttled: disable priority and fairness, the limit of in-flight requests,
	// and profiling.
	s.Features.EnablePriorityAndFairness = false
	s.GenericServerRunOptions.MaxRequestsInFlight = 0
	s.GenericServerRunOptions.MaxMutatingRequestsInFlight = 0
	s.Features.EnableProfiling = false
	// Otherwise each open watch would delay the stop until its client disconnects.
	s.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchTerminationGrace

	if err := setFlags(s, o.apiServerArgs()); err != nil {
		return nil, err
	}
	disablePlugins(s.Admission.GenericAdmission, o.controllers())
	return s, nil
}

// disablePlugins disables admission plugins that do not work here, unless a flag enables them.
func disablePlugins(admission *genericoptions.AdmissionOptions, controllers []string) {
	// The node is always Ready, and no controller would remove the "not ready" taint.
	unsuitable := []string{"TaintNodesByCondition"}
	if !slices.Contains(controllers, names.ServiceAccountController) {
		// The plugin rejects pods in namespaces without the service account "default", which no controller creates in this
		// case.
		unsuitable = append(unsuitable, "ServiceAccount")
	}
	for _, plugin := range unsuitable {
		if !slices.Contains(admission.EnablePlugins, plugin) && !slices.Contains(admission.DisablePlugins, plugin) {
			admission.DisablePlugins = append(admission.DisablePlugins, plugin)
		}
	}
}

// reportedVersion makes /version return the version that was compiled in. Kubernetes relies on linker flags for it,
// which "go install" does not set.
type reportedVersion struct {
	basecompatibility.EffectiveVersion
	git string
}

func (v reportedVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = v.git
	info.GitCommit = ""
	info.GitTreeState = ""
	info.BuildDate = ""
	return info
}
