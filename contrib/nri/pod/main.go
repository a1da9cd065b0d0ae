// SPDX-License-Identifier: GPL-2.0

// Command pod does the part of kubelet that mqfair-nri depends on, for tests: it asks a container
// runtime over CRI for a pod with one container, db, and prints the ids of both.
//
//	pod SOCKET IMAGE CGROUP [ANNOTATION=VALUE...]
//
// CGROUP is the slice of the pod, as kubelet names it. The pod has the network of the node, so it
// needs no CNI. An error ends the program with status 1.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An emulated processor takes long for a container.
const patience = 10 * time.Minute

func run(socket, image, cgroup string, annotations map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	connection, err := grpc.DialContext(ctx, "unix://"+socket, grpc.WithBlock(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	runtime := cri.NewRuntimeServiceClient(connection)
	network := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}
	config := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: "shop", Namespace: "default", Uid: "12"},
		Annotations: annotations,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    cgroup,
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: network},
		},
	}
	pod, err := runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		return err
	}
	container, err := runtime.CreateContainer(ctx, &cri.CreateContainerRequest{
		PodSandboxId:  pod.PodSandboxId,
		SandboxConfig: config,
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: "db"},
			Image:    &cri.ImageSpec{Image: image},
			Linux: &cri.LinuxContainerConfig{
				SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: network},
			},
		},
	})
	if err != nil {
		return err
	}
	_, err = runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: container.ContainerId})
	fmt.Println(pod.PodSandboxId, container.ContainerId)
	return err
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: pod SOCKET IMAGE CGROUP [ANNOTATION=VALUE...]")
		os.Exit(2)
	}
	annotations := map[string]string{}
	for _, word := range os.Args[4:] {
		name, value, _ := strings.Cut(word, "=")
		annotations[name] = value
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], annotations); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}
