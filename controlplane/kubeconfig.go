// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"trueup.dev/controlplane/internal/datadir"
)

// contextName is the name of cluster, user and context in the kubeconfigs of control planes. It distinguishes them from
// other kubeconfigs.
const contextName = "trueup-controlplane"

func encodeKubeconfig(url string, caPEM []byte, user credentials) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: contextName,
		Clusters: map[string]*clientcmdapi.Cluster{
			contextName: {Server: url, CertificateAuthorityData: caPEM},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			contextName: {ClientCertificateData: user.cert, ClientKeyData: user.key},
		},
		Contexts: map[string]*clientcmdapi.Context{
			contextName: {Cluster: contextName, AuthInfo: contextName, Namespace: "default"},
		},
	})
}

// restConfig returns a configuration for in-process clients, without client-side throttling.
func restConfig(url string, caPEM []byte, user credentials, userAgent string) *rest.Config {
	return &rest.Config{
		Host:      url,
		QPS:       -1,
		UserAgent: userAgent,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: caPEM, CertData: user.cert, KeyData: user.key,
		},
	}
}

// checkKubeconfigTarget returns an error if the file is not a kubeconfig of a control plane, or its directory does not
// exist. It is called before any component starts.
func checkKubeconfigTarget(file string) error {
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", file, datadir.Cause(err))
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", file, datadir.Cause(err))
	}
	existing, err := clientcmd.Load(content)
	if err != nil || existing.CurrentContext != contextName {
		return fmt.Errorf(
			"kubeconfig %s: exists and was not written by a control plane; choose another file or remove it", file,
		)
	}
	return nil
}

// writeKubeconfig replaces the file atomically, so that a waiting process never reads an incomplete file.
func writeKubeconfig(file string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*") // mode 0600
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", file, datadir.Cause(err))
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("kubeconfig %s: %w", file, datadir.Cause(err))
	}
	return nil
}

// removeKubeconfig removes the file unless its content has changed.
func removeKubeconfig(file string, content []byte) error {
	found, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !bytes.Equal(found, content)) {
		return nil
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", file, datadir.Cause(err))
	}
	return nil
}
