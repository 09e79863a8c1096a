// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
)

const (
	serviceRange = "10.96.0.0/16"
	issuer       = "https://kubernetes.default.svc.cluster.local"

	watchTerminationGrace = 500 * time.Millisecond
)

// serviceIP is the cluster address of the service "kubernetes": the first of serviceRange.
var serviceIP = net.IPv4(10, 96, 0, 1)

// runFunc serves until its context is done.
type runFunc func(context.Context) error

// newAPIServer prepares kube-apiserver with all its parts. It serves when the returned function runs. It takes
// ownership of listener.
func newAPIServer(
	ctx context.Context, listener net.Listener, etcdSocket string, keys *pki, controllers []string,
) (runFunc, error) {
	s := apiServerOptions(listener, etcdSocket, keys, controllers)
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	completed, err := s.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver: %w", errors.Join(errs...))
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	generic := config.KubeAPIs.ControlPlane.Generic
	version := reportedVersion{EffectiveVersion: generic.EffectiveVersion, git: KubernetesVersion()}
	generic.EffectiveVersion = version
	config.ApiExtensions.GenericConfig.EffectiveVersion = version
	config.Aggregator.GenericConfig.EffectiveVersion = version

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

func apiServerOptions(
	listener net.Listener, etcdSocket string, keys *pki, controllers []string,
) *options.ServerRunOptions {
	s := options.NewServerRunOptions()

	s.SecureServing.Listener = listener
	s.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	s.SecureServing.ServerCert.CertKey.CertFile = keys.servingCert
	s.SecureServing.ServerCert.CertKey.KeyFile = keys.servingKey
	s.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	// The service "kubernetes" gets no endpoints: a loopback address is not a valid one.
	s.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)
	s.ServiceClusterIPRanges = serviceRange
	s.AllowPrivileged = true

	s.Etcd.StorageConfig.Transport.ServerList = []string{"unix://" + etcdSocket}
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

	// The node is always Ready, and no controller would remove the "not ready" taint.
	s.Admission.GenericAdmission.DisablePlugins = []string{"TaintNodesByCondition"}
	if !slices.Contains(controllers, names.ServiceAccountController) {
		// The plugin rejects pods in namespaces without the service account "default", which no controller creates in this
		// case.
		s.Admission.GenericAdmission.DisablePlugins = append(s.Admission.GenericAdmission.DisablePlugins, "ServiceAccount")
	}
	return s
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
