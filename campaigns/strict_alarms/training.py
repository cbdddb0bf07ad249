"""Drivers of packages for graphs, diffusion, images, attributions and training."""

# ruff: noqa: D103 - each function is named after its package

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from .drivers import Call, r


def torch_geometric() -> Iterator[Call]:
    from torch_geometric import nn as g
    from torch_geometric.data import Batch, Data
    from torch_geometric.utils import softmax, to_dense_adj

    edges = torch.randint(0, 10, (2, 40))
    x, weight = r(10, 8), r(40)
    for name in (
        *("GCNConv", "SAGEConv", "GraphConv", "GATConv", "GATv2Conv", "TransformerConv"),
        *("TAGConv", "ARMAConv", "SGConv", "GatedGraphConv", "ChebConv", "FeaStConv"),
        *("LEConv", "ClusterGCNConv", "GENConv", "FiLMConv", "SuperGATConv", "EGConv"),
        *("ResGatedGraphConv", "MFConv", "GeneralConv", "LGConv", "SSGConv", "APPNP", "GCN2Conv"),
    ):

        def run(name: str = name) -> None:
            sizes: tuple[Any, ...] = (8, 8)
            more: dict[str, Any] = {"ChebConv": {"K": 2}, "SSGConv": {"alpha": 0.1}}.get(name, {})
            if name in ("LGConv", "APPNP", "GCN2Conv"):
                sizes = {"APPNP": (2, 0.1), "GCN2Conv": (8, 0.1)}.get(name, ())
            sizes = (8, 2) if name == "GatedGraphConv" else sizes
            module = getattr(g, name)(*sizes, **more)
            arguments = (x, x, edges) if name == "GCN2Conv" else (x, edges)
            module(*arguments).sum()
            if name in ("GCNConv", "GraphConv", "TAGConv", "ARMAConv", "SGConv", "LEConv"):
                module(x, edges, weight)
            if name in ("GATConv", "GATv2Conv", "TransformerConv"):
                getattr(g, name)(8, 4, heads=2, edge_dim=3)(x, edges, r(40, 3))

        yield name, run
    graphs = Batch.from_data_list([Data(x=x, edge_index=edges) for _ in range(3)])
    for name in ("global_mean_pool", "global_add_pool", "global_max_pool"):
        yield name, lambda n=name: getattr(g, n)(graphs.x, graphs.batch)
    for name in ("GraphNorm", "InstanceNorm", "LayerNorm", "PairNorm", "MeanSubtractionNorm"):
        sizes = () if name in ("PairNorm", "MeanSubtractionNorm") else (8,)
        yield name, lambda n=name, s=sizes: getattr(g, n)(*s)(graphs.x, graphs.batch)
    for name in ("SoftmaxAggregation", "SortAggregation", "MultiAggregation", "VarAggregation"):
        options = {"SortAggregation": (3,), "MultiAggregation": (["mean", "std"],)}.get(name, ())
        yield name, lambda n=name, o=options: getattr(g, n)(*o)(graphs.x, graphs.batch)
    yield "pooling", lambda: g.TopKPooling(8)(graphs.x, graphs.edge_index, None, graphs.batch)
    yield "sag", lambda: g.SAGPooling(8)(graphs.x, graphs.edge_index, None, graphs.batch)
    yield "dense", lambda: g.dense_diff_pool(r(2, 10, 8), r(2, 10, 10), r(2, 10, 4))
    yield "mincut", lambda: g.dense_mincut_pool(r(2, 10, 8), r(2, 10, 10), r(2, 10, 4))
    yield "dmon", lambda: g.DMoNPooling([8], 4)(r(2, 10, 8), r(2, 10, 10))
    yield "softmax", lambda: softmax(r(40, 2), edges[0]).sum() + to_dense_adj(edges).sum()
    z, at = torch.randint(1, 9, (9,)), torch.zeros(9).long()
    yield "SchNet", lambda: g.SchNet(16, 16, 2, 8, 5.0, interaction_graph=_near)(z, r(9, 3), at)
    yield "ViSNet", lambda: g.models.ViSNet(hidden_channels=16, num_heads=2, num_layers=1)
    yield "Node2Vec loss", lambda: g.GAE(g.GCNConv(8, 4)).recon_loss(r(10, 4), edges)
    yield "VGAE", lambda: g.VGAE(g.GCNConv(8, 4)).kl_loss(r(10, 4), r(10, 4))
    yield (
        "Infomax",
        lambda: g.DeepGraphInfomax(
            4, g.GCNConv(8, 4), lambda z, *a: z.mean(0), lambda x, e: (x.flip(0), e)
        )(x, edges),
    )
    yield "LINKX", lambda: g.LINKX(10, 8, 8, 2, 2)(x, edges)
    yield "GPS", lambda: g.GPSConv(8, g.GCNConv(8, 8), heads=2)(x, edges)


def _near(pos: torch.Tensor, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    row, col = torch.triu_indices(len(pos), len(pos), 1)
    return torch.stack([row, col]), (pos[row] - pos[col]).norm(dim=-1)


def diffusers() -> Iterator[Call]:
    import diffusers as d

    blocks = {"block_out_channels": (32, 64), "layers_per_block": 1, "norm_num_groups": 8}
    unet = d.UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        **blocks,
    )
    yield "unet", lambda: unet(r(2, 3, 16, 16), torch.tensor([1, 5])).sample.sum().backward()
    conditioned = d.UNet2DConditionModel(
        sample_size=16,
        cross_attention_dim=16,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        **blocks,
    )
    yield (
        "conditioned",
        lambda: (
            conditioned(
                r(2, 4, 16, 16), 3, r(2, 7, 16), encoder_attention_mask=torch.ones(2, 7)
            ).sample
        ),
    )
    vae = d.AutoencoderKL(block_out_channels=(32,), norm_num_groups=8, latent_channels=4)
    yield "vae", lambda: vae(r(2, 3, 16, 16)).sample.sum().backward()
    yield "kl", lambda: vae.encode(r(2, 3, 16, 16)).latent_dist.kl().sum()
    dit = d.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, num_layers=1, sample_size=8, patch_size=2
    )
    yield (
        "dit",
        lambda: dit(
            r(2, 4, 8, 8), timestep=torch.tensor([1, 5]), class_labels=torch.tensor([1, 2])
        ),
    )
    for name in (
        *("DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler"),
        *(
            "EulerAncestralDiscreteScheduler",
            "DPMSolverMultistepScheduler",
            "UniPCMultistepScheduler",
        ),
        *("HeunDiscreteScheduler", "LMSDiscreteScheduler", "FlowMatchEulerDiscreteScheduler"),
        *("DEISMultistepScheduler", "KDPM2DiscreteScheduler", "LCMScheduler"),
        *("DPMSolverSinglestepScheduler", "SASolverScheduler", "EDMEulerScheduler"),
    ):

        def run(name: str = name) -> None:
            scheduler = getattr(d, name)()
            scheduler.set_timesteps(5)
            x = r(2, 3, 8, 8)
            if name != "FlowMatchEulerDiscreteScheduler":
                at = scheduler.timesteps[:2]
                scheduler.add_noise(x, r(2, 3, 8, 8), at)
            for t in scheduler.timesteps[:3]:
                if hasattr(scheduler, "scale_model_input"):
                    scheduler.scale_model_input(x, t)
                x = scheduler.step(r(2, 3, 8, 8), t, x).prev_sample

        yield name, run
    pipeline = d.DDPMPipeline(unet, d.DDPMScheduler())
    pipeline.set_progress_bar_config(disable=True)
    yield "pipeline", lambda: pipeline(batch_size=2, num_inference_steps=2, output_type="np")
    from diffusers.training_utils import EMAModel, compute_snr

    yield (
        "training",
        lambda: (
            EMAModel(unet.parameters()).step(unet.parameters()),
            compute_snr(d.DDPMScheduler(), torch.tensor([1, 5])),
        ),
    )


def captum() -> Iterator[Call]:
    from captum import attr

    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x, base = r(4, 6), torch.zeros(4, 6)
    for name in (
        *("IntegratedGradients", "Saliency", "InputXGradient", "DeepLift", "GuidedBackprop"),
        *("FeatureAblation", "Occlusion", "ShapleyValueSampling", "FeaturePermutation"),
        *("KernelShap", "Lime", "GradientShap", "DeepLiftShap"),
    ):

        def run(name: str = name) -> None:
            more: dict[str, Any] = {"target": 1}
            if name in ("GradientShap", "DeepLiftShap"):
                more["baselines"] = base
            if name == "Occlusion":
                more["sliding_window_shapes"] = (2,)
            if name in ("KernelShap", "Lime"):
                more["n_samples"] = 8
            getattr(attr, name)(net).attribute(x, **more)

        yield name, run
    for name in (
        "LayerConductance",
        "LayerIntegratedGradients",
        "LayerGradCam",
        "InternalInfluence",
    ):
        yield name, lambda n=name: getattr(attr, n)(net, net[0]).attribute(x, target=1)
    yield "tunnel", lambda: attr.NoiseTunnel(attr.Saliency(net)).attribute(x, target=1)
    yield (
        "infidelity",
        lambda: __import__("captum").metrics.infidelity(
            net, lambda a, b=None: (0.1 * r(*a.shape), a * 0.9), x, base, target=1
        ),
    )


def pytorch_lightning() -> Iterator[Call]:
    import lightning_fabric  # noqa: F401
    import pytorch_lightning as pl

    class Model(pl.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

        def training_step(self, batch: Any, _k: int) -> Any:
            x, y = batch
            loss = nn.functional.mse_loss(self.net(x), y)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.TensorDataset(r(32, 4), r(32, 1))
    loader = torch.utils.data.DataLoader(data, 8)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    options = {"accelerator": "cpu", "enable_model_summary": False, "max_epochs": 1}
    yield "fit", lambda: pl.Trainer(**quiet, **options).fit(Model(), loader)
    yield (
        "clip",
        lambda: pl.Trainer(
            **quiet, **options, gradient_clip_val=0.5, accumulate_grad_batches=2
        ).fit(Model(), loader),
    )
    averaging = [pl.callbacks.StochasticWeightAveraging(0.01)]
    yield (
        "averages",
        lambda: pl.Trainer(**quiet, **options, callbacks=averaging).fit(Model(), loader),
    )


def pytorch_metric_learning() -> Iterator[Call]:
    from pytorch_metric_learning import distances, losses, miners, reducers

    x, y = r(16, 8), torch.arange(16) % 4
    for name in (
        *("ContrastiveLoss", "TripletMarginLoss", "NTXentLoss", "SupConLoss", "CircleLoss"),
        *("MultiSimilarityLoss", "LiftedStructureLoss", "AngularLoss", "FastAPLoss"),
        *("SignalToNoiseRatioContrastiveLoss", "MarginLoss", "NPairsLoss", "TupletMarginLoss"),
        *("IntraPairVarianceLoss", "InstanceLoss", "PNPLoss", "RankedListLoss", "HistogramLoss"),
    ):

        def run(name: str = name) -> None:
            more = {"margin": 0.5, "Tn": 1.0} if name == "RankedListLoss" else {}
            getattr(losses, name)(**more)(x, y)

        yield name, run
    for name in (
        "ArcFaceLoss",
        "CosFaceLoss",
        "ProxyAnchorLoss",
        "ProxyNCALoss",
        "SoftTripleLoss",
        "NormalizedSoftmaxLoss",
        "SphereFaceLoss",
        "SubCenterArcFaceLoss",
    ):
        yield name, lambda n=name: getattr(losses, n)(num_classes=4, embedding_size=8)(x, y)
    for name in (
        "TripletMarginMiner",
        "MultiSimilarityMiner",
        "BatchHardMiner",
        "PairMarginMiner",
        "DistanceWeightedMiner",
        "BatchEasyHardMiner",
        "AngularMiner",
        "UniformHistogramMiner",
    ):
        yield name, lambda n=name: getattr(miners, n)()(x, y)
    yield (
        "distances",
        lambda: (
            distances.LpDistance()(x),
            distances.SNRDistance()(x),
            distances.CosineSimilarity()(x),
        ),
    )
    yield (
        "reducers",
        lambda: losses.TripletMarginLoss(reducer=reducers.ThresholdReducer(low=0.1))(x, y),
    )


def monai() -> Iterator[Call]:
    import monai

    m = monai.losses
    x, y = r(2, 3, 16, 16).softmax(1), torch.randint(0, 3, (2, 1, 16, 16))
    for name in ("DiceLoss", "DiceCELoss", "GeneralizedDiceLoss", "TverskyLoss", "DiceFocalLoss"):
        yield name, lambda n=name: getattr(m, n)(to_onehot_y=True, softmax=True)(x, y)
    yield "focal", lambda: m.FocalLoss(to_onehot_y=True)(x, y)
    yield "hausdorff", lambda: m.HausdorffDTLoss(to_onehot_y=True, softmax=True)(x, y)
    image = r(2, 1, 16, 16)
    yield "ncc", lambda: m.LocalNormalizedCrossCorrelationLoss(spatial_dims=2)(image, image)
    yield "mutual", lambda: m.GlobalMutualInformationLoss()(image, image)
    yield "bending", lambda: m.BendingEnergyLoss()(r(2, 2, 16, 16))
    yield "ssim", lambda: m.SSIMLoss(2)(image, image)
    nets = monai.networks.nets
    yield "UNet", lambda: nets.UNet(2, 1, 2, (4, 8), (2,))(image)
    yield "UNETR", lambda: nets.UNETR(1, 2, (32, 32), 4, 24, 48, 2, spatial_dims=2)(r(1, 1, 32, 32))
    yield (
        "SwinUNETR",
        lambda: nets.SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2)(
            r(1, 1, 64, 64)
        ),
    )
    yield "SegResNet", lambda: nets.SegResNet(2, 8, 1, 2)(image)
    yield "AttentionUnet", lambda: nets.AttentionUnet(2, 1, 2, (4, 8), (2,))(image)
    yield "VarAutoEncoder", lambda: nets.VarAutoEncoder(2, (1, 16, 16), 1, 2, (4, 8), (1, 2))(image)
    onehot = monai.networks.one_hot(y, 3)
    k = monai.metrics
    yield "dice", lambda: k.compute_dice(onehot, onehot)
    yield "surface", lambda: k.compute_average_surface_distance(onehot, onehot)
    yield "roc", lambda: k.compute_roc_auc(r(9), torch.randint(0, 2, (9,)))
    yield (
        "window",
        lambda: monai.inferers.sliding_window_inference(
            image, (8, 8), 2, lambda x: x * 2, mode="gaussian"
        ),
    )
    t = monai.transforms
    for transform in (
        *(t.ScaleIntensity(), t.NormalizeIntensity(channel_wise=True), t.RandAffine(prob=1.0)),
        *(
            t.RandGaussianNoise(prob=1.0),
            t.RandBiasField(prob=1.0),
            t.Rand2DElastic((4, 4), (1, 2)),
        ),
        *(t.RandGibbsNoise(prob=1.0), t.GaussianSmooth(), t.RandHistogramShift(prob=1.0)),
    ):
        yield type(transform).__name__, lambda f=transform: f(image[0])


def stable_baselines3() -> Iterator[Call]:
    import gymnasium
    import stable_baselines3 as sb

    short = {"n_steps": 16, "policy_kwargs": {"net_arch": [8]}}
    for name, world, options in (
        ("PPO", "CartPole-v1", {**short, "batch_size": 8}),
        ("A2C", "CartPole-v1", {**short, "use_rms_prop": True}),
        ("PPO", "Pendulum-v1", {**short, "batch_size": 8, "use_sde": True}),
        ("SAC", "Pendulum-v1", {"learning_starts": 8, "batch_size": 8}),
        ("TD3", "Pendulum-v1", {"learning_starts": 8, "batch_size": 8}),
        ("DDPG", "Pendulum-v1", {"learning_starts": 8, "batch_size": 8}),
        ("DQN", "CartPole-v1", {"learning_starts": 8, "batch_size": 8}),
    ):

        def run(name: str = name, world: str = world, options: Any = options) -> None:
            environment = gymnasium.make(world)
            getattr(sb, name)("MlpPolicy", environment, device="cpu", **options).learn(48)

        yield f"{name} {world}", run


def vector_quantize_pytorch() -> Iterator[Call]:
    import vector_quantize_pytorch as v

    x = r(2, 16, 8)
    for name, options in (
        ("VectorQuantize", {"dim": 8, "codebook_size": 16}),
        ("VectorQuantize", {"dim": 8, "codebook_size": 16, "use_cosine_sim": True}),
        ("VectorQuantize", {"dim": 8, "codebook_size": 16, "heads": 2, "kmeans_init": True}),
        ("VectorQuantize", {"dim": 8, "codebook_size": 16, "orthogonal_reg_weight": 1.0}),
        ("ResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("GroupedResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2, "groups": 2}),
        ("FSQ", {"dim": 8, "levels": [4, 4, 3]}),
        ("LFQ", {"dim": 8, "codebook_size": 16}),
        ("ResidualFSQ", {"dim": 8, "levels": [4, 4], "num_quantizers": 2}),
        ("SimVQ", {"dim": 8, "codebook_size": 16}),
        (
            "RandomProjectionQuantizer",
            {"dim": 8, "codebook_size": 16, "codebook_dim": 4, "num_codebooks": 2},
        ),
    ):
        yield name, lambda n=name, o=options: getattr(v, n)(**o)(x)


def image_quality() -> Iterator[Call]:
    import pytorch_msssim as p

    x, y = r(2, 3, 176, 176), r(2, 3, 176, 176)
    yield "ssim", lambda: p.ssim(x, y, data_range=1.0)
    yield "ms_ssim", lambda: p.ms_ssim(x, y, data_range=1.0)
    yield "modules", lambda: p.SSIM(data_range=1.0)(x, y) + p.MS_SSIM(data_range=1.0)(x, y)


def small_packages() -> Iterator[Call]:
    import auraloss
    import entmax
    import torchdiffeq
    import torchsde

    a, b = r(2, 1, 4096), r(2, 1, 4096)
    for name in ("STFTLoss", "MultiResolutionSTFTLoss"):
        yield name, lambda n=name: getattr(auraloss.freq, n)()(a, b)
    for name in ("SISDRLoss", "SNRLoss", "LogCoshLoss", "ESRLoss", "DCLoss", "SDSDRLoss"):
        yield name, lambda n=name: getattr(auraloss.time, n)()(a, b)
    times = torch.linspace(0, 1, 5)
    for method in ("dopri5", "rk4", "euler", "midpoint", "implicit_adams", "adaptive_heun"):
        yield method, lambda m=method: torchdiffeq.odeint(lambda t, y: -y, r(4, 3), times, method=m)

    class Noise(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def f(self, _t: Any, y: Any) -> Any:
            return -y

        def g(self, _t: Any, y: Any) -> Any:
            return 0.1 * y.sigmoid()

    for method in ("euler", "milstein", "srk"):
        yield method, lambda m=method: torchsde.sdeint(Noise(), r(4, 3), times, method=m, dt=0.1)
    x = r(6, 9).requires_grad_()
    yield "entmax", lambda: entmax.entmax15(x, -1).sum().backward()
    yield "sparsemax", lambda: entmax.SparsemaxLoss()(x, torch.randint(0, 9, (6,)))
    yield "bisect", lambda: entmax.entmax_bisect(x, alpha=r(6, 1) + 1.1).sum().backward()


def e3nn() -> Iterator[Call]:
    from e3nn import nn as enn
    from e3nn import o3

    x = o3.Irreps("4x0e + 2x1o")
    yield "product", lambda: o3.FullyConnectedTensorProduct(x, x, x)(x.randn(5, -1), x.randn(5, -1))
    yield "harmonics", lambda: o3.spherical_harmonics([0, 1, 2], r(7, 3), True)
    yield "linear", lambda: o3.Linear(x, x)(x.randn(5, -1))
    yield "norm", lambda: enn.BatchNorm(x)(x.randn(5, -1))
    yield "gate", lambda: enn.NormActivation(x, torch.sigmoid)(x.randn(5, -1))
    yield "wigner", lambda: o3.rand_matrix(4) @ o3.angles_to_matrix(*o3.rand_angles(4))
    yield "conversions", lambda: o3.matrix_to_quaternion(o3.rand_matrix(4))
    yield "dropout", lambda: enn.Dropout(x, 0.5)(x.randn(5, -1))
