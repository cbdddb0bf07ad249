"""Calls of packages' public functions and modules with random inputs and weights.

This file runs in the interpreter that has the packages, and needs PyTorch alone before a driver
imports its package.
"""

# ruff: noqa: D103 - each function is named after its package

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

Call = tuple[str, Callable[[], Any]]
r = torch.rand


def einops() -> Iterator[Call]:
    from einops import einsum, rearrange, reduce, repeat
    from einops.layers.torch import EinMix, Rearrange, Reduce

    x = r(2, 3, 8, 8)
    yield "rearrange", lambda: rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2)
    yield "reduce", lambda: x - reduce(x, "b c h w -> b c 1 1", "mean")
    yield "repeat", lambda: x * repeat(r(3), "c -> c 8 8")
    yield "einsum", lambda: einsum(x, r(3, 4), "b c h w, c d -> b d h w")
    yield "layers", lambda: Reduce("b c -> b", "max")(Rearrange("b c h w -> b (c h w)")(x))
    yield "mix", lambda: EinMix("b c h w -> b h w d", "c d", "d", c=3, d=5)(x)


def x_transformers() -> Iterator[Call]:
    import x_transformers as x

    tokens = torch.randint(0, 32, (2, 16))
    forms: dict[str, dict[str, Any]] = {
        "rotary": {"rotary_pos_emb": True},
        "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
        "relative": {"rel_pos_bias": True},
        "dynamic": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": True},
        "xpos": {"rotary_xpos": True},
        "gates": {"attn_gate_values": True, "ff_glu": True, "use_rmsnorm": True},
        "queries": {"attn_qk_norm": True, "attn_pre_talking_heads": True},
        "sandwich": {"sandwich_norm": True, "residual_attn": True},
        "memory": {"attn_num_mem_kv": 2, "shift_tokens": 1},
        "keys": {"attn_kv_heads": 1, "attn_sparse_topk": 4},
        "macaron": {"macaron": True, "scale_residual": True},
    }
    for name, options in forms.items():
        model = x.TransformerWrapper(
            num_tokens=32,
            max_seq_len=16,
            attn_layers=x.Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **options),
        )
        yield name, lambda model=model: x.AutoregressiveWrapper(model)(tokens).backward()
    both = {f"{side}_{k}": v for side in ("enc", "dec") for k, v in _SIZES.items()}
    seq = x.XTransformer(dim=32, **both)
    mask = torch.ones(2, 16).bool()
    yield "encoder and decoder", lambda: seq(tokens, tokens, mask=mask).backward()
    vit = x.ViTransformerWrapper(
        image_size=16, patch_size=4, num_classes=3, attn_layers=x.Encoder(dim=32, depth=1, heads=2)
    )
    yield "images", lambda: vit(r(2, 3, 16, 16)).sum().backward()
    series = x.ContinuousTransformerWrapper(
        dim_in=4, dim_out=2, max_seq_len=16, attn_layers=x.Encoder(dim=32, depth=1, heads=2)
    )
    yield "series", lambda: series(r(2, 16, 4), mask=mask)


_SIZES = {"num_tokens": 32, "depth": 1, "heads": 2, "max_seq_len": 16}


def torchmetrics() -> Iterator[Call]:
    import torchmetrics as tm
    from torchmetrics import functional as f

    a, b, two = r(32), r(32), r(32, 2)
    classes, scores = torch.randint(0, 4, (32,)), r(32, 4).softmax(-1)
    for name in (
        *("mean_squared_error", "mean_absolute_error", "mean_squared_log_error", "r2_score"),
        *("explained_variance", "pearson_corrcoef", "spearman_corrcoef", "concordance_corrcoef"),
        *("kendall_rank_corrcoef", "mean_absolute_percentage_error", "log_cosh_error"),
        *("symmetric_mean_absolute_percentage_error", "weighted_mean_absolute_percentage_error"),
        *("relative_squared_error", "minkowski_distance", "tweedie_deviance_score"),
        *("normalized_root_mean_squared_error", "critical_success_index"),
    ):
        more: dict[str, Any] = {"minkowski_distance": {"p": 3}}.get(name, {})
        more = {"threshold": 0.5} if name == "critical_success_index" else more
        yield name, lambda name=name, more=more: getattr(f, name)(a, b, **more)
    for name in ("mean_squared_error", "pearson_corrcoef", "concordance_corrcoef", "r2_score"):
        wide: dict[str, Any] = {"num_outputs": 2} if name == "mean_squared_error" else {}
        yield f"{name} of two", lambda n=name, w=wide: getattr(f, n)(two, r(32, 2), **w)
    for name in (
        *("accuracy", "precision", "recall", "f1_score", "specificity", "auroc", "cohen_kappa"),
        *("average_precision", "confusion_matrix", "matthews_corrcoef", "calibration_error"),
        *("jaccard_index", "hinge_loss", "roc", "precision_recall_curve", "hamming_distance"),
    ):
        multi = {"task": "multiclass", "num_classes": 4}
        yield name, lambda n=name, m=multi: getattr(f, n)(scores, classes, **m)
        yield f"binary {name}", lambda n=name: getattr(f, n)(a, (b > 0.5).long(), task="binary")
        if name not in ("cohen_kappa", "calibration_error", "hinge_loss"):
            labels = {"task": "multilabel", "num_labels": 4}
            yield (
                f"labels {name}",
                lambda n=name, m=labels: getattr(f, n)(scores, (r(32, 4) > 0.5).long(), **m),
            )
    from torchmetrics.functional import audio, clustering, image, pairwise, retrieval

    image_a, image_b = r(2, 3, 48, 48), r(2, 3, 48, 48)
    for name in (
        *("structural_similarity_index_measure",),
        *("spectral_angle_mapper", "universal_image_quality_index", "total_variation"),
        *("error_relative_global_dimensionless_synthesis", "relative_average_spectral_error"),
        *("root_mean_squared_error_using_sliding_window", "spectral_distortion_index"),
        *("visual_information_fidelity", "spatial_correlation_coefficient"),
    ):
        pair = (image_a,) if name == "total_variation" else (image_a, image_b)
        yield name, lambda n=name, p=pair: getattr(image, n)(*p)
    for name in pairwise.__all__:
        yield name, lambda n=name: getattr(pairwise, n)(r(5, 3), r(6, 3))
    for name in ("signal_noise_ratio", "scale_invariant_signal_distortion_ratio"):
        yield name, lambda n=name: getattr(audio, n)(r(2, 100), r(2, 100))
    for name in retrieval.__all__:
        yield name, lambda n=name: getattr(retrieval, n)(a, (b > 0.5))
    for name in ("mutual_info_score", "rand_score", "v_measure_score", "adjusted_rand_score"):
        yield name, lambda n=name: getattr(clustering, n)(classes, torch.randint(0, 4, (32,)))
    for name in ("calinski_harabasz_score", "davies_bouldin_score", "dunn_index"):
        yield name, lambda n=name: getattr(clustering, n)(r(32, 3), classes)
    yield "nominal", lambda: f.cramers_v(classes, torch.randint(0, 4, (32,)))
    yield "perplexity", lambda: f.text.perplexity(r(2, 8, 5), torch.randint(0, 5, (2, 8)))
    yield "collection", lambda: tm.MetricCollection([tm.MeanSquaredError(), tm.R2Score()])(a, b)


def kornia() -> Iterator[Call]:
    import kornia as k
    from kornia import augmentation as aug

    x = r(2, 3, 32, 32)
    for name in (
        *("rgb_to_hsv", "hsv_to_rgb", "rgb_to_lab", "lab_to_rgb", "rgb_to_grayscale", "rgb_to_xyz"),
        *("rgb_to_yuv", "rgb_to_ycbcr", "rgb_to_luv", "sepia_from_rgb", "rgb_to_linear_rgb"),
    ):
        yield name, lambda n=name: getattr(k.color, n)(x)
    e = k.enhance
    yield "equalize", lambda: e.equalize(x)
    yield "clahe", lambda: e.equalize_clahe(x)
    yield "adjust", lambda: e.adjust_hue(e.adjust_saturation(e.adjust_gamma(x, 0.5), 2.0), 0.1)
    yield "brightness", lambda: e.adjust_brightness(e.adjust_contrast(x, r(2)), r(2))
    yield "normalize", lambda: e.normalize(x, r(3), r(3) + 1)
    yield "sharpness", lambda: e.sharpness(e.posterize(e.solarize(x, 0.5), 3), 0.5)
    yield "zca", lambda: e.zca_whiten(r(20, 4))
    yield "histogram", lambda: e.histogram(r(2, 50), torch.linspace(0, 1, 8), torch.tensor(0.9))
    f = k.filters
    yield "gaussian", lambda: f.gaussian_blur2d(x, (5, 5), r(2, 2) + 0.5)
    yield "bilateral", lambda: f.bilateral_blur(x, (5, 5), 0.1, (1.5, 1.5))
    yield "canny", lambda: f.canny(x)
    yield "motion", lambda: f.motion_blur(x, 5, 35.0, 0.5)
    yield "sobel", lambda: f.sobel(f.laplacian(f.median_blur(f.box_blur(x, 3), 3), 3))
    yield "guided", lambda: f.guided_blur(x, x, 3, 0.1)
    yield "unsharp", lambda: f.unsharp_mask(x, (3, 3), (1.5, 1.5))
    g, m = k.geometry, k.morphology
    yield "rotate", lambda: g.rotate(x, r(2) * 90)
    yield "affine", lambda: g.affine(x, r(2, 2, 3))
    yield "warp", lambda: g.warp_perspective(x, torch.eye(3).expand(2, 3, 3), (32, 32))
    yield "resize", lambda: g.resize(x, (16, 24), antialias=True)
    yield "homography", lambda: g.find_homography_dlt(r(2, 8, 2), r(2, 8, 2), r(2, 8))
    yield "ransac", lambda: g.RANSAC("homography", max_iter=2)(r(20, 2), r(20, 2))
    yield "fundamental", lambda: g.epipolar.find_fundamental(r(2, 9, 2), r(2, 9, 2), r(2, 9))
    yield (
        "epipolar",
        lambda: g.epipolar.sampson_epipolar_distance(r(2, 9, 2), r(2, 9, 2), r(2, 3, 3)),
    )
    yield "lines", lambda: g.epipolar.compute_correspond_epilines(r(2, 9, 2), r(2, 3, 3))
    yield (
        "triangulate",
        lambda: g.epipolar.triangulate_points(r(2, 3, 4), r(2, 3, 4), r(2, 9, 2), r(2, 9, 2)),
    )
    yield "axis angle", lambda: g.axis_angle_to_rotation_matrix(r(4, 3))
    yield "quaternions", lambda: g.quaternion_to_rotation_matrix(g.normalize_quaternion(r(4, 4)))
    yield "to quaternions", lambda: g.rotation_matrix_to_quaternion(torch.linalg.qr(r(4, 3, 3)).Q)
    yield "project", lambda: g.project_points(r(2, 9, 3), r(2, 1, 3, 3))
    yield "unproject", lambda: g.unproject_points(r(2, 9, 2), r(2, 9, 1), r(2, 1, 3, 3))
    yield "distort", lambda: g.calibration.undistort_points(r(2, 9, 2), r(2, 3, 3), r(2, 8))
    yield "depth", lambda: g.depth.depth_to_3d(r(2, 1, 8, 8), r(2, 3, 3))
    yield "transform", lambda: g.transform_points(r(2, 4, 4), r(2, 9, 3))
    yield "boxes", lambda: g.bbox.infer_bbox_shape(r(2, 4, 2))
    yield "line distance", lambda: g.line.ParametrizedLine.through(r(3), r(3)).distance(r(3))
    yield "morphology", lambda: m.closing(m.gradient(x, torch.ones(3, 3)), torch.ones(3, 3))
    losses = k.losses
    yield "ssim", lambda: losses.ssim_loss(x, x.flip(-1), 5)
    yield (
        "focal",
        lambda: losses.focal_loss(r(4, 3, 8, 8), torch.randint(0, 3, (4, 8, 8)), 0.5, 2.0, "mean"),
    )
    yield "dice", lambda: losses.dice_loss(r(4, 3, 8, 8), torch.randint(0, 3, (4, 8, 8)))
    yield (
        "tversky",
        lambda: losses.tversky_loss(r(4, 3, 8, 8), torch.randint(0, 3, (4, 8, 8)), 0.5, 0.5),
    )
    yield (
        "lovasz",
        lambda: losses.lovasz_softmax_loss(r(4, 3, 8, 8), torch.randint(0, 3, (4, 8, 8))),
    )
    yield (
        "hausdorff",
        lambda: losses.HausdorffERLoss()(r(2, 3, 8, 8), torch.randint(0, 3, (2, 1, 8, 8))),
    )
    yield "divergences", lambda: losses.js_div_loss_2d(r(2, 3, 8, 8), r(2, 3, 8, 8))
    yield "psnr", lambda: losses.psnr_loss(x, x.flip(-1), 1.0) + losses.total_variation(x).sum()
    yield "smoothness", lambda: losses.inverse_depth_smoothness_loss(r(2, 1, 8, 8), r(2, 3, 8, 8))
    yield "robust", lambda: losses.charbonnier_loss(x, x) + losses.welsch_loss(x, x)
    feature = k.feature
    yield "harris", lambda: feature.harris_response(x)
    yield "sift", lambda: feature.SIFTDescriptor(32)(r(4, 1, 32, 32))
    yield "match", lambda: feature.match_snn(r(9, 8), r(7, 8), 0.9)
    yield "mutual", lambda: feature.match_smnn(r(9, 8), r(7, 8), 0.9)
    yield "frames", lambda: feature.laf_from_center_scale_ori(r(2, 5, 2), r(2, 5, 1, 1), r(2, 5, 1))
    yield (
        "patches",
        lambda: feature.extract_patches_from_pyramid(
            r(2, 1, 32, 32), feature.laf_from_center_scale_ori(r(2, 5, 2) * 32)
        ),
    )
    for name in (
        *("RandomAffine", "RandomRotation", "RandomPerspective", "ColorJitter", "RandomErasing"),
        *("RandomElasticTransform", "RandomGaussianBlur", "RandomMotionBlur", "RandomSharpness"),
        *("RandomPlanckianJitter", "RandomCutMixV2", "RandomMixUpV2", "RandomFisheye"),
        *("RandomThinPlateSpline", "RandomPlasmaShadow", "RandomResizedCrop", "RandomEqualize"),
        *("RandomSolarize", "RandomPosterize", "RandomBoxBlur", "RandomChannelShuffle"),
    ):
        options: dict[str, tuple[Any, ...]] = {
            "RandomAffine": (30.0,),
            "RandomRotation": (30.0,),
            "ColorJitter": (0.1, 0.1, 0.1, 0.1),
            "RandomGaussianBlur": ((3, 3), (0.1, 2.0)),
            "RandomMotionBlur": (3, 35.0, 0.5),
            "RandomFisheye": (torch.tensor([-0.3, 0.3]),) * 2 + (torch.tensor([0.9, 1.0]),),
            "RandomResizedCrop": ((16, 16),),
        }
        own = options.get(name, ())
        yield name, lambda n=name, o=own: getattr(aug, n)(*o, p=1.0)(x)


def transformers() -> Iterator[Call]:
    import transformers as t

    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "vocab_size": 64,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }
    keys = {"num_key_value_heads": 1}
    ids, mask = torch.randint(1, 64, (2, 12)), torch.ones(2, 12).long()
    mask[0, :4] = 0
    causal = ("Llama", "Mistral", "Qwen2", "Gemma", "Gemma2", "Phi3", "StableLm", "Cohere", "Olmo")
    for name in (
        *causal,
        "GPTNeoX",
        "Starcoder2",
        "Granite",
        "Qwen3",
        "Mixtral",
        "Phi",
        "Persimmon",
    ):

        def run(name: str = name) -> None:
            more = keys if name in (*causal, "Qwen3", "Mixtral") else {}
            more = {**more, "head_dim": 16} if name in ("Gemma", "Gemma2", "Qwen3") else more
            config = getattr(t, f"{name}Config")(**small, **more, attn_implementation="eager")
            model = getattr(t, f"{name}ForCausalLM")(config)
            model(input_ids=ids, attention_mask=mask, labels=ids).loss.backward()
            model.eval().generate(ids, max_new_tokens=3, do_sample=True, top_p=0.9)

        yield name, run
    for name in ("Bert", "Roberta", "Electra", "Deberta", "DebertaV2", "RoFormer", "ConvBert"):

        def run_masked(name: str = name) -> None:
            config = getattr(t, f"{name}Config")(**small, relative_attention=True)
            tokens = {"input_ids": ids, "attention_mask": mask}
            getattr(t, f"{name}ForMaskedLM")(config)(**tokens, labels=ids).loss.backward()
            for labels, kind in ((1, "regression"), (3, "multi_label_classification")):
                config.num_labels, config.problem_type = labels, kind
                model = getattr(t, f"{name}ForSequenceClassification")(config)
                target = r(2) if labels == 1 else r(2, 3)
                model(**tokens, labels=target).loss.backward()

        yield name, run_masked
    small_t5 = {
        "decoder_start_token_id": 0,
        "d_model": 32,
        "d_kv": 16,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 2,
    }
    others: dict[str, dict[str, Any]] = {
        "T5": small_t5,
        "LongT5": small_t5,
        "Bart": _BART,
        "Pegasus": _BART,
        "MBart": _BART,
        "Marian": {**_BART, "decoder_start_token_id": 0},
    }
    for name, sizes in others.items():

        def run_pair(name: str = name, sizes: dict[str, Any] = sizes) -> None:
            config = getattr(t, f"{name}Config")(vocab_size=64, pad_token_id=0, **sizes)
            kind = "MTModel" if name == "Marian" else "ForConditionalGeneration"
            model = getattr(t, f"{name}{kind}")(config)
            model(input_ids=ids, attention_mask=mask, labels=ids).loss.backward()

        yield name, run_pair
    images = {"image_size": 32, "patch_size": 8, "num_channels": 3}
    for name in ("ViT", "DeiT", "Dinov2", "Beit", "Siglip", "CLIP"):

        def run_images(name: str = name) -> None:
            kind = f"{name}Vision" if name in ("Siglip", "CLIP") else name
            sizes = {k: v for k, v in small.items() if k.startswith(("hid", "num", "int"))}
            model = getattr(t, f"{kind}Model")(getattr(t, f"{kind}Config")(**sizes, **images))
            model(pixel_values=r(2, 3, 32, 32))

        yield name, run_images
    gpt = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 64, "n_positions": 64}
    yield "GPT2", lambda: t.GPT2LMHeadModel(t.GPT2Config(**gpt))(ids, labels=ids).loss.backward()
    yield (
        "Bloom",
        lambda: t.BloomForCausalLM(
            t.BloomConfig(hidden_size=32, n_layer=2, n_head=2, vocab_size=64)
        )(ids, attention_mask=mask, labels=ids).loss.backward(),
    )
    yield (
        "Falcon",
        lambda: t.FalconForCausalLM(t.FalconConfig(**small, alibi=True))(
            ids, attention_mask=mask, labels=ids
        ).loss.backward(),
    )
    yield (
        "Mpt",
        lambda: t.MptForCausalLM(t.MptConfig(d_model=32, n_heads=2, n_layers=2, vocab_size=64))(
            ids, attention_mask=mask, labels=ids
        ).loss.backward(),
    )
    yield (
        "Mamba",
        lambda: t.MambaForCausalLM(
            t.MambaConfig(hidden_size=32, num_hidden_layers=2, vocab_size=64, state_size=4)
        )(ids, labels=ids).loss.backward(),
    )
    yield (
        "series",
        lambda: t.TimeSeriesTransformerForPrediction(
            t.TimeSeriesTransformerConfig(
                prediction_length=4, context_length=8, lags_sequence=[1, 2], d_model=32
            )
        )(
            past_values=r(2, 10),
            past_time_features=r(2, 10, 0),
            past_observed_mask=torch.ones(2, 10),
            future_values=r(2, 4),
            future_time_features=r(2, 4, 0),
        ).loss.backward(),
    )
    sound = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    yield (
        "Wav2Vec2",
        lambda: t.Wav2Vec2Model(t.Wav2Vec2Config(**sound, intermediate_size=48)).eval()(r(2, 2000)),
    )
    yield (
        "Whisper",
        lambda: t.WhisperModel(t.WhisperConfig(**_WHISPER, vocab_size=64, pad_token_id=0))(
            r(2, 80, 100), decoder_input_ids=ids
        ),
    )
    yield (
        "Swin",
        lambda: t.SwinModel(
            t.SwinConfig(
                image_size=32,
                patch_size=2,
                embed_dim=16,
                depths=[1, 1],
                num_heads=[2, 2],
                window_size=4,
            )
        )(r(2, 3, 32, 32)),
    )
    yield (
        "Detr",
        lambda: t.DeformableDetrModel(
            t.DeformableDetrConfig(
                use_timm_backbone=False,
                backbone_config=t.ResNetConfig(
                    embedding_size=8,
                    hidden_sizes=[8, 8, 8, 8],
                    depths=[1, 1, 1, 1],
                    out_features=["stage2", "stage3", "stage4"],
                ),
                d_model=32,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                num_queries=5,
            )
        )(r(2, 3, 64, 64)),
    )


_BART = {
    **{
        f"{side}_{k}": v
        for side in ("encoder", "decoder")
        for k, v in {"layers": 1, "attention_heads": 2, "ffn_dim": 48}.items()
    },
    "d_model": 32,
    "max_position_embeddings": 64,
}
_WHISPER = {**_BART, "max_source_positions": 50, "max_target_positions": 64}
_WHISPER.pop("max_position_embeddings")
